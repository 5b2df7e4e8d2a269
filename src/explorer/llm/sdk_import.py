"""A vendor's SDK, imported without the types of its whole API.

An SDK's package imports every type of every endpoint: 0.3 s of CPU for OpenAI's, 0.5 s for Anthropic's, and a request
of ours needs hardly any of them. Here a package of an SDK is imported without running its `__init__`: a name of it is
looked up when it is first asked for. So a program that uses the SDK itself finds everything where it is documented.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from threading import RLock
from types import ModuleType
from typing import Any

RE_EXPORT = re.compile(r"^from (\.\w+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
"""A line of an `__init__` that only exports names of a module of the package again."""


def sdk_part(package: str, module: str, name: str) -> Any:  # noqa: ANN401 - whatever the SDK has there
    """Return a name of an SDK.

    Args:
        package: The SDK's name.
        module: The module of the SDK that defines the name; private modules may move.
        name: One that the SDK's package exports, too.
    """
    finder = _Finder(package)
    sys.meta_path.insert(0, finder)
    try:
        return getattr(import_module(f"{package}.{module}"), name)
    except (ImportError, AttributeError):
        return getattr(import_module(package), name)
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    """Finds the SDK's package and those of its types, to be loaded on demand."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how such a package is loaded; None for every other module."""
        if name not in {self._package, f"{self._package}.lib"} and not f"{name}.".startswith(f"{self._package}.types."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.submodule_search_locations is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        spec.loader = _OnDemand(spec.loader.name, spec.loader.path)
        return spec


class _OnDemand(SourceFileLoader):
    """Loads a package whose `__init__` runs when a name is asked for that no module below it has."""

    def __init__(self, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._lock = RLock()
        self._is_run = False
        self._first = frozenset[str]()
        """Names that the empty module has."""

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module empty, with a way to its names."""

        def look_up(name: str) -> object:
            with self._lock:
                if name in vars(module):
                    return vars(module)[name]
                value = self._value(module, name)
                setattr(module, name, value)
                return value

        def listed() -> list[str]:
            with self._lock:
                self._run(module)
            return sorted(vars(module))

        vars(module).update(__getattr__=look_up, __dir__=listed)
        self._first = frozenset(vars(module))

    def _value(self, module: ModuleType, name: str) -> object:
        """Return the value of a name.

        Raises:
            AttributeError: There is nothing.
        """
        if name in self._re_exports:
            place, original = self._re_exports[name]
            return getattr(import_module(place, self.name), original)
        if find_spec(f"{self.name}.{name}"):
            return import_module(f"{self.name}.{name}")
        self._run(module)
        if name not in vars(module):
            raise AttributeError(f"module {self.name!r} has no attribute {name!r}")
        return vars(module)[name]

    def _run(self, module: ModuleType) -> None:
        """Run the `__init__`, once; what a program has set in the package meanwhile, such as a key, stays."""
        if not self._is_run:
            self._is_run = True
            was_set = {name: value for name, value in vars(module).items() if name not in self._first}
            super().exec_module(module)
            vars(module).update(was_set)

    @cached_property
    def _re_exports(self) -> Mapping[str, tuple[str, str]]:
        """The module and the name there of each re-exported name. A whole SDK's `__init__` does more than that."""
        if "." not in self.name:
            return {}
        places: dict[str, tuple[str, str]] = {}
        for place, several, one in RE_EXPORT.findall(self.get_source(self.name) or ""):
            for words in (several or one).split(","):
                original, _, given = words.strip().partition(" as ")
                places[given or original] = (place, original)
        return places
