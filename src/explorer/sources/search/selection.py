"""Which search engines are asked, in which order, and why: by what is configured."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from pydantic import SecretStr

from explorer.schema.errors import ConfigError, CredentialsError
from explorer.schema.setting import ExtensionSettings, extension_place
from explorer.sources.http.caller import Caller
from explorer.sources.search.chain import SearchChain
from explorer.sources.search.port import SearchAccess, SearchEngine, WebSearch

AUTO = "auto"
"""In place of an engine's name: what is configured."""


@dataclass(frozen=True)
class ConfiguredEngine:
    """An engine, and what the user set for it."""

    engine: SearchEngine[Any]
    settings: ExtensionSettings

    @property
    def is_ready(self) -> bool:
        """Whether it has what it needs: a key, or an address."""
        value = getattr(self.settings, self.engine.needs) if self.engine.needs else ""
        return bool(value.get_secret_value() if isinstance(value, SecretStr) else value)

    @property
    def name(self) -> str:
        """As its results are labelled, with what it needs or without."""
        return self.engine.name if self.is_ready else self.engine.without_name or self.engine.name

    @property
    def variable(self) -> str:
        """What brings it: the variable of what it needs, or its name as the setting."""
        needed = self.engine.needed
        return needed.variable if needed else f"EXPLORER_SEARCH={self.engine.name}"

    @property
    def address(self) -> tuple[str, str]:
        """Where it is, and the setting that says so; both empty when it has no address of its own."""
        url = str(getattr(self.settings, "url", ""))
        return (url, extension_place(self.engine.name, "url", is_secret=False)) if url else ("", "")


@dataclass(frozen=True)
class SearchSetup:
    """Which engine is asked for, and those that there are."""

    engines: Sequence[ConfiguredEngine] = field(default=(), repr=False)
    """In the order in which they are asked."""
    engine: str = AUTO
    """`auto`, or the name of one."""
    caller: Caller = field(default_factory=Caller)
    is_sample: bool = False
    """The sample day, which has no web search."""


@dataclass(frozen=True)
class SearchPlan:
    """The engines in the order of asking; none on the sample day."""

    asked: tuple[ConfiguredEngine, ...]
    why: str
    more: str
    """What else could be configured, for people: variables, separated by commas."""

    @property
    def engines(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(one.name for one in self.asked)


def plan_search(
    setup: SearchSetup, has_module: Callable[[str], bool] = lambda name: find_spec(name) is not None
) -> SearchPlan:
    """Plan without opening anything.

    `auto` asks what is configured, one after another until one answers. An engine set by name is the only one that
    is asked: who names one does not want the question to go elsewhere.

    Raises:
        ConfigError: The engine set by name cannot be used.
    """
    if setup.is_sample:
        return SearchPlan((), "the sample day has no web search", "")
    ready = [one for one in setup.engines if one.is_ready]
    missing = ", ".join(one.variable for one in setup.engines if one.engine.needs and not one.is_ready)
    if setup.engine == AUTO:
        by_name = ", ".join(one.variable for one in setup.engines if not one.engine.needs)
        asked = (*ready, *(one for one in setup.engines if one.engine.without_name and not one.is_ready))
        first = f"{ready[0].variable} is set" if ready else "nothing else is configured"
        others = f"; when it fails, {', then '.join(one.name for one in asked[1:])}" if asked[1:] else ""
        return SearchPlan(asked, f"{first}{others}", ", ".join(part for part in (missing, by_name) if part))
    chosen = _named(setup)
    _check(chosen, has_module)
    more = "EXPLORER_SEARCH=auto" + (f" and {missing}" if missing else "")
    return SearchPlan((chosen,), f"search is set to {chosen.engine.name}", more)


def choose_search(setup: SearchSetup, pause: Callable[[float], Awaitable[object]] = asyncio.sleep) -> SearchChain:
    """The engines that are configured, behind one port; nothing is sent before the first search.

    `pause` waits between attempts.

    Raises:
        ConfigError: The engine set by name cannot be used.
    """
    plan = plan_search(setup)
    access = SearchAccess(setup.caller, pause)
    return SearchChain([_opened(one, access) for one in plan.asked], plan.more)


def _opened(one: ConfiguredEngine, access: SearchAccess) -> WebSearch:
    return one.engine.open(one.settings, access)


def _named(setup: SearchSetup) -> ConfiguredEngine:
    engines: Mapping[str, ConfiguredEngine] = {one.engine.name: one for one in setup.engines}
    if setup.engine not in engines:
        hint = f"one of {', '.join((AUTO, *engines))}"
        raise ConfigError(f"there is no search engine {setup.engine!r}", hint=hint)
    return engines[setup.engine]


def _check(chosen: ConfiguredEngine, has_module: Callable[[str], bool]) -> None:
    engine = chosen.engine
    if engine.package and not has_module(engine.package):
        hint = f"pip install 'explorer[{engine.package}]', or EXPLORER_SEARCH=auto"
        raise ConfigError(f"search is set to {engine.name}, which is not installed", hint=hint)
    if engine.needed is None or chosen.is_ready or engine.without_name:
        return
    hint = f"set {chosen.variable}, or EXPLORER_SEARCH=auto"
    if engine.needed.is_secret:
        raise CredentialsError(f"search is set to {engine.name}, but its key is missing", hint=hint)
    raise ConfigError(f"search is set to {engine.name}, but its address is missing", hint=hint)
