"""Errors as people read them: what happened and why on one line, the way out on the next."""

import sys
import traceback
from types import TracebackType
from typing import cast

from explorer.cli.screens.output import say
from explorer.cli.screens.sanitize import one_line, plain
from explorer.schema.errors import ExplorerError

MESSAGE_CHARS = 1_000
TRACEBACKS = 2
"""The number of `-v` from which tracebacks are shown."""


def print_error(error: ExplorerError, *, verbose: int) -> None:
    """Write an error and its hint to stderr; with `-vv` its traceback first."""
    if verbose >= TRACEBACKS:
        say(plain("".join(traceback.format_exception(error)).rstrip()))
    say(f"explorer: {one_line(error.message, MESSAGE_CHARS)}")
    if error.hint:
        say(f"  → {plain(error.hint)}")


def print_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None, *, verbose: int) -> None:
    """Write what nobody foresaw: one line, or with `-vv` all of it."""
    if verbose >= TRACEBACKS:
        say(plain("".join(traceback.format_exception(kind, error, trace)).rstrip()))
    innermost = _innermost(error)
    words = one_line(str(innermost), MESSAGE_CHARS)
    say(f"explorer: something unforeseen happened: {type(innermost).__name__}" + (f": {words}" if words else ""))
    if verbose < TRACEBACKS:
        say("  → run it again with -vv for the traceback")


def _innermost(error: BaseException) -> BaseException:
    """What a group of one holds: task groups wrap whatever comes out of them."""
    members = cast("tuple[BaseException, ...]", getattr(error, "exceptions", ()))
    return _innermost(members[0]) if len(members) == 1 else error


def verbosity(tokens: list[str]) -> int:
    """How often `-v` was given, read from the bare tokens: errors of the parser itself obey it too."""
    flags = tokens[: tokens.index("--")] if "--" in tokens else tokens
    short = sum(len(flag) - 1 for flag in flags if flag.startswith("-v") and set(flag[1:]) == {"v"})
    return short + flags.count("--verbose")


def write_replacing() -> None:
    """Let characters that the terminal's encoding lacks be replaced, not end the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
