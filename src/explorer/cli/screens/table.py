"""Plain tables and pages, readable in a pipe and on a terminal of any width."""

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from explorer.cli.screens.sanitize import one_line

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
