"""Plain aligned tables, readable on a terminal and in a pipe."""

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from explorer.cli.screens.sanitize import one_line

GAP = "  "


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], *, last_width: int = 0) -> str:
    """Columns as wide as their widest cell; the last one as it is, or cut to `last_width` cells."""
    cells = [[one_line(cell) for cell in row] for row in (header, *rows)]
    widths = [max(cell_len(row[column]) for row in cells) for column in range(len(header) - 1)]
    lines: list[str] = []
    for row in cells:
        parts = [set_cell_size(cell, width) for cell, width in zip(row, widths, strict=False)]
        last = row[-1]
        if last_width and cell_len(last) > last_width:
            last = set_cell_size(last, last_width - 1).rstrip() + "…"
        lines.append(GAP.join([*parts, last]).rstrip())
    return "\n".join(lines)
