"""A report on a terminal."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

from cli.stage import clean_environment

SHOW = "import sys; from explorer.cli.report_page import print_report; print_report(open(sys.argv[1]).read())"


def on_terminal(markdown: str, folder: Path) -> str:
    """What a terminal of 100 columns gets."""
    path = folder / "report.md"
    path.write_text(markdown)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SHOW, str(path)],
        stdout=theirs,
        env=clean_environment(folder) | {"TERM": "dumb", "NO_COLOR": "1"},
    ):
        os.close(theirs)
        said = io.BytesIO()
        try:
            while piece := os.read(ours, 4096):
                said.write(piece)
        except OSError:  # how a terminal says that its last writer is gone
            pass
    os.close(ours)
    return said.getvalue().decode().replace("\r\n", "\n")


def test_an_image_is_told_in_words(tmp_path: Path) -> None:
    """A terminal shows no image: it says what it shows and where it is, wherever it stands, and keeps the text."""
    said = on_terminal(
        "---\nstatus: complete\n---\n\n# Day\n\n![Points per hour](analysis/points.png)\n\n"
        "Beside it ![](a%20b.svg) stands.\n\n| What | Chart |\n|---|---|\n| x | ![T](t.png) |\n",
        tmp_path,
    )
    assert "[image: Points per hour, analysis/points.png]" in said
    assert "Beside it [image: a b.svg] stands." in said
    assert "[image: T, t.png]" in said
    assert "status" not in said
