"""The notes under the fields of our records, as descriptions in the OpenAPI document.

Pydantic would read them for each class when it is imported; here they are read when somebody asks for the document.
"""

import ast
import inspect
import sys
import typing
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

Modules = dict[str, dict[str, ast.ClassDef]]
"""The classes at the top of each module that has been looked into."""


def add_notes(document: dict[str, Any], answers: Iterable[type]) -> None:
    """Add the note of each field that has one to a document, for all types that these answers are made of."""
    schemas: dict[str, Any] = document["components"]["schemas"]
    modules: Modules = {}
    for kind in _reached(answers):
        for name, note in _notes(kind, modules).items():
            field = schemas.get(kind.__name__, {}).get("properties", {}).get(name)
            if field is not None:
                field.setdefault("description", note)


def _reached(answers: Iterable[type]) -> set[type]:
    """Return the records among types, and those that their fields are made of."""
    found, open_ones = set[type](), list[type](answers)
    while open_ones:
        kind = open_ones.pop()
        if kind not in found:
            found.add(kind)
            for hint in typing.get_type_hints(kind).values():
                open_ones += _records_in(hint)
    return found


def _records_in(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, BaseModel)):
        yield hint
    for part in typing.get_args(hint):
        yield from _records_in(part)


def _notes(kind: type, modules: Modules) -> dict[str, str]:
    """Return the note under each field of a class, and of those that it derives from."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("explorer."):
            if base.__module__ not in modules:
                modules[base.__module__] = _classes(base.__module__)
            found |= dict(_written(modules[base.__module__][base.__name__]))
    return found


def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes at the top of a module: its source is parsed once, and not once for each class."""
    body = ast.parse(inspect.getsource(sys.modules[module])).body
    return {node.name: node for node in body if isinstance(node, ast.ClassDef)}


def _written(body: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, note in pairwise(body.body):
        match field, note:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
            case _:
                pass
