"""A report on a terminal."""

import io
import os
import pty
from contextlib import redirect_stdout
from pathlib import Path

from command import done_here
from explorer.cli.screens.output import print_report


def on_terminal(markdown: str, folder: Path) -> str:
    """What a terminal of 100 columns gets; no more than it holds unread."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as screen:

        def show() -> int:
            with redirect_stdout(screen):
                print_report(markdown)
            return 0

        done_here(show, folder, {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "100"})
    output = io.BytesIO()
    try:
        while piece := os.read(ours, 4096):
            output.write(piece)
    except OSError:  # how a terminal says that its last writer is gone
        pass
    os.close(ours)
    return output.getvalue().decode().replace("\r\n", "\n")


def test_an_image_is_told_in_words(tmp_path: Path) -> None:
    """A terminal shows no image: it says what it shows and where it is, wherever it stands, and keeps the text."""
    output = on_terminal(
        "---\nstatus: complete\n---\n\n# Day\n\n![Points per hour](analysis/points.png)\n\n"
        "Beside it ![](a%20b.svg) stands.\n\n| What | Chart |\n|---|---|\n| x | ![T](t.png) |\n",
        tmp_path,
    )
    assert "[image: Points per hour, analysis/points.png]" in output
    assert "Beside it [image: a b.svg] stands." in output
    assert "[image: T, t.png]" in output
    assert "status" not in output
