"""What is piped in next to a question: a file the question is about, as if it had been given with `--file`."""

import io
import os
import select
import stat
import sys
from collections.abc import Callable

from explorer.documents.corpus.folder import MAX_FILE_BYTES
from explorer.documents.corpus.reading import PARSED, readable_kind
from explorer.schema.errors import ConfigError

WAIT_S = 2.0
"""A pipe that holds nothing for so long, and is not closed, is a script's own and nobody's input."""
SUFFIXES = {kind: f".{kind}" for kind in PARSED}
"""Suffix of a kind that is not plain text."""
NOTHING = "nothing came from standard input, though it is open; the question is asked without it"


def piped_files(say: Callable[[str], None], wait_s: float = WAIT_S) -> dict[str, bytes]:
    """Read stdin; return its bytes by their name in the run, such as `stdin.txt` or `stdin.pdf`, or nothing.

    Nothing is read from a terminal, a device such as /dev/null, or a closed stdin.

    Args:
        say: Is told when a pipe stayed open and silent.
        wait_s: How long the first byte of a pipe is waited for.

    Raises:
        ConfigError: It is too much.
    """
    body = _body(say, wait_s)
    if not body.strip():
        return {}
    if len(body) > MAX_FILE_BYTES:
        raise ConfigError(
            f"standard input has more than {MAX_FILE_BYTES:,} bytes", hint="give the part that matters, or --corpus DIR"
        )
    return {f"stdin{SUFFIXES.get(readable_kind(body, 'stdin'), '.txt')}": body}


def _body(say: Callable[[str], None], wait_s: float) -> bytes:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - None where it was closed at the start
        return b""
    try:
        return sys.stdin.buffer.read(MAX_FILE_BYTES + 1) if _holds_something(say, wait_s) else b""
    except (OSError, ValueError):
        # Closed, or opened for writing only.
        return b""


def _holds_something(say: Callable[[str], None], wait_s: float) -> bool:
    """Return whether stdin is a file, or a pipe with something in it or closed at its other end."""
    try:
        descriptor = sys.stdin.fileno()
    except io.UnsupportedOperation:
        # An embedding program's own stream: it holds what it holds.
        return True
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return stat.S_ISREG(mode)
    is_ready = bool(select.select([descriptor], [], [], wait_s)[0])
    if not is_ready:
        say(NOTHING)
    return is_ready
