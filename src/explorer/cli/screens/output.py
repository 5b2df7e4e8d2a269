"""What stdout and stderr carry: pages that fit the terminal, errors, and the shape in which programs read results."""

import json
import os
import re
import shutil
import sys
import textwrap
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType
from typing import cast
from urllib.parse import unquote

from rich.cells import cell_len, set_cell_size

from explorer.cli.settings.options import OutputFormat
from explorer.observe.command_result import CommandResult
from explorer.observe.formatting import BIDI_CONTROLS, one_line, plain, without_controls
from explorer.schema.errors import ExplorerError, StorageError

GAP = "  "
MIN_LAST_WIDTH = 24
"""Cells of the last column, below which each row gets lines of its own."""
MIN_WIDTH = 30
ABSENT = {"", "-"}
HANGING = re.compile(r"\s*(?:\S+(?: \S+)*\s{2,})?")
"""What a continued line of a page is indented by: the indentation and a name with its gap."""


def terminal_width() -> int | None:
    """Return the columns of the terminal that stdout is; None where it is a pipe or a file, which need no wrapping."""
    return max(shutil.get_terminal_size().columns, MIN_WIDTH) if sys.stdout.isatty() else None


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], *, last_width: int = 0) -> str:
    """Return a table whose columns are as wide as their widest cell.

    On a terminal that is too narrow the last column is wrapped; where that leaves too little of it, each row becomes
    a few lines with the names of the columns.

    Args:
        header: The names of the columns.
        rows: As many cells each.
        last_width: Cells that the last column is cut to; 0: not at all.
    """
    cells = [[one_line(cell) for cell in row] for row in (header, *rows)]
    for row in cells:
        if last_width and cell_len(row[-1]) > last_width:
            row[-1] = set_cell_size(row[-1], last_width - 1).rstrip() + "…"
    widths = [max(cell_len(row[column]) for row in cells) for column in range(len(header))]
    width = terminal_width()
    taken = sum(widths[:-1]) + len(GAP) * (len(header) - 1)
    if width is None or taken + widths[-1] <= width:
        return "\n".join(_line(row, widths) for row in cells)
    if width - taken >= MIN_LAST_WIDTH:
        return "\n".join(_wrapped(row, widths, width - taken) for row in cells)
    return "\n".join(_block(cells[0], row, width) for row in cells[1:])


def fitted(text: str) -> str:
    """Return a page whose lines fit the terminal: longer ones are continued under what they say."""
    width = terminal_width()
    return text if width is None else "\n".join(_continued(line, width) for line in text.split("\n"))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    parts = [set_cell_size(cell, width) for cell, width in zip(row[:-1], widths, strict=False)]
    return GAP.join([*parts, row[-1]]).rstrip()


def _wrapped(row: Sequence[str], widths: Sequence[int], room: int) -> str:
    parts = _parts(row[-1], room) or [""]
    rest = [""] * (len(row) - 1)
    return "\n".join(_line([*(row[:-1] if number == 0 else rest), part], widths) for number, part in enumerate(parts))


def _block(header: Sequence[str], row: Sequence[str], width: int) -> str:
    """Return a row as lines: its first cell, the cells between with their columns' names, the last one."""
    if row[0] in ABSENT and len(row) > 2:  # noqa: PLR2004 - a first, a last and one between
        return _block(header[1:], row[1:], width)
    between = [
        f"{name.lower()} {cell}" for name, cell in zip(header[1:-1], row[1:-1], strict=True) if cell not in ABSENT
    ]
    lines = [*_parts(row[0], width)]
    for words in (", ".join(between), row[-1]):
        lines += [f"{GAP}{part}" for part in _parts(words, width - len(GAP))]
    return "\n".join(lines)


def _continued(line: str, width: int) -> str:
    if cell_len(line) <= width:
        return line
    found = HANGING.match(line)
    indent = min(cell_len(found[0]) if found else 0, width // 2)
    head = line[:indent]
    parts = _parts(line[indent:], width - indent)
    return "\n".join(f"{head if number == 0 else ' ' * indent}{part}" for number, part in enumerate(parts))


def _parts(text: str, width: int) -> list[str]:
    """Return a text in lines of so many cells; a path or an id that is longer stays whole, to be copied."""
    lines: list[str] = []
    for part in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False):
        rest = part
        # Characters of two cells, in scripts that have no spaces.
        while cell_len(rest) > width and cell_len(rest) > len(rest):
            cut = set_cell_size(rest, width).rstrip()
            lines.append(cut)
            rest = rest[len(cut) :]
        lines.append(rest)
    return lines


INTERRUPTED = 130
TERMINATED = 143
HUNG_UP = 129
"""128 and the number of the signal, as shells count."""


ESCAPED_CONTROLS = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *BIDI_CONTROLS)}
"""Controls that JSON does not escape by itself, with their escapes."""


def as_json(value: object) -> str:
    """Return one line of JSON; what cannot be encoded, or would control a terminal, is written as an escape."""
    line = json.dumps(value, ensure_ascii=False, default=str).translate(ESCAPED_CONTROLS)
    return line.encode("utf-8", "backslashreplace").decode("utf-8")


def say(text: str) -> None:
    """Write a line to stderr, without what would control a terminal. A reader that went away must not end a run."""
    with suppress(OSError, ValueError):
        print(without_controls(text), file=sys.stderr, flush=True)


def emit(text: str) -> None:
    """Write to stdout, complete, without what would control a terminal: a pipe may end at one.

    A reader that went away (`| head`) is no failure: what follows goes nowhere.

    Raises:
        StorageError: The output is a file on a full disk, or the like.
    """
    try:
        print(without_controls(text), flush=True)
    except BrokenPipeError:
        discard_stdout()
    except OSError as error:
        discard_stdout()
        hint = "see that there is space for it, or send it elsewhere"
        raise StorageError(f"could not write to standard output: {error.strerror}", hint=hint) from error


def discard_stdout() -> None:
    """Send what is still written to stdout nowhere, so that the interpreter does not fail at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def emit_page(text: str) -> None:
    """Write a page for people to stdout: on a terminal its lines fit.

    Raises:
        StorageError: As `emit`.
    """
    emit(fitted(text))


def print_report(markdown: str) -> None:
    """Write a report to stdout: rendered for a terminal, as it is for everything else."""
    if not markdown:
        return
    if not sys.stdout.isatty():
        emit(markdown.rstrip("\n"))
        return
    from rich.console import Console  # noqa: PLC0415 - slow to import, and only terminals need it
    from rich.markdown import Markdown  # noqa: PLC0415 - the same

    from explorer.text.frontmatter import split_frontmatter  # noqa: PLC0415 - the same

    page = Markdown(plain(split_frontmatter(markdown).body), hyperlinks=False)
    images = [token for block in page.parsed for token in block.children or [] if token.type == "image"]
    for token in images:
        token.content = _image_words(token.content, str(token.attrs.get("src", "")))
        token.type, token.tag, token.children = "text", "", None
    Console(highlight=False, emoji=False).print(page)


def _image_words(shows: str, path: str) -> str:
    """Return what stands for an image, which a terminal cannot show: what it shows, and where it is."""
    return f"[image: {', '.join(part for part in (shows, unquote(path)) if part)}]"


def emit_json(value: object) -> None:
    """Write one object."""
    emit(as_json(value))


def emit_outcome(outcome: CommandResult, output_format: OutputFormat) -> None:
    """Tell programs how it ended; text has its report on stdout already, or nothing."""
    if output_format == "json":
        emit_json(asdict(outcome))
    elif output_format == "stream-json":
        emit_json({"type": "result", **asdict(outcome)})


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
    """Return what a group of one holds: task groups wrap whatever comes out of them."""
    members = cast("tuple[BaseException, ...]", getattr(error, "exceptions", ()))
    return _innermost(members[0]) if len(members) == 1 else error


def verbosity(tokens: list[str]) -> int:
    """Return how often `-v` was given, read from the bare tokens: errors of the parser itself obey it too."""
    flags = tokens[: tokens.index("--")] if "--" in tokens else tokens
    short = sum(len(flag) - 1 for flag in flags if flag.startswith("-v") and set(flag[1:]) == {"v"})
    return short + flags.count("--verbose")


def write_replacing() -> None:
    """Let characters that the terminal's encoding lacks be replaced, not end the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
