"""What a page or a model writes never controls the user's terminal, also where a pipe ends at one."""

import io
import json
import unicodedata
from pathlib import Path

import pytest
from rich.console import Console

from cli.stage import Explorer
from cli.test_hostile_journals import OLD, RUN, sealed
from command import explorer_here
from explorer.cli.screens.live import LiveView
from explorer.journal.listing import read_records
from explorer.observe.run_view import RunView
from explorer.workspace.access import journal_path

TITLE = "\x1b]0;owned\x07"
RED = "\x1b[31m"
EIGHT_BIT = "\x9b31m"
BIDI = "\u202e\u2066\u200f\u061c"
"""Characters that turn the order of what follows round."""
KEPT = "\n\t| a | 光 | 👩\u200d🔬 |\n"
"""With a joined emoji, whose joiner is no control character."""


@pytest.mark.parametrize("words", [("report", "latest"), ("watch", "latest", "--speed", "max")], ids=" ".join)
def test_a_report_in_a_pipe_has_no_control_sequence(kept_run: Path, here: Explorer, words: tuple[str, ...]) -> None:
    """As text they are dropped whole; as JSON they are escapes, and the text is complete."""
    report = kept_run / "report.md"
    text = f"{report.read_text()}{TITLE}{RED}end{EIGHT_BIT}{BIDI}{KEPT}"
    report.write_text(text)
    done = here(*words)
    assert "end\n\t| a | 光 | 👩\u200d🔬 |" in done.stdout
    assert "owned" not in done.stdout
    assert controls(done.stdout) == []
    done = here(*words, "--output-format", "json")
    assert json.loads(done.stdout)["report_text"].endswith(f"{TITLE}{RED}end{EIGHT_BIT}{BIDI}{KEPT}")
    assert controls(done.stdout) == []


def controls(text: str) -> list[str]:
    """The characters of a text that control a terminal."""
    turns = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    return [
        c
        for c in text
        if (unicodedata.category(c) == "Cc" and c not in "\n\t")
        or unicodedata.bidirectional(c) in turns
        or c in "\u200e\u200f\u061c"
    ]


def renamed(folder: Path) -> Path:
    """A run of somebody else, whose agents, roles, models and id have names that control a terminal."""
    records = [json.loads(line) for line in OLD.read_text().strip().split("\n")]
    for record in records:
        for name in {"agent", "role", "run_id", "model", "name", "shell"} & record.keys():
            record[name] = f"{record[name]}{TITLE}{RED}{EIGHT_BIT}{BIDI}"
    run = folder / "workspace" / RUN
    (run / ".explorer").mkdir(parents=True)
    journal_path(run).write_bytes(sealed(records))
    return run


@pytest.mark.parametrize("words", [(), ("--timeline",), ("--files",), ("--costs",)], ids=str)
def test_names_in_a_journal_from_elsewhere_control_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    """They are ids and not text of a model, and whoever made the journal chose them."""
    renamed(tmp_path)
    for command in (("show", RUN, *words), ("watch", RUN, "--speed", "max"), ("verify", RUN), ("doctor", RUN)):
        done = explorer_here(*command, cwd=tmp_path, settings={"EXPLORER_WORKSPACE": "workspace"})
        assert command[0] != "watch" or "orchestrator" in done.stderr
        assert controls(done.stderr + done.stdout) == [], command


def test_names_in_a_journal_from_elsewhere_control_nothing_in_the_live_view(tmp_path: Path) -> None:
    """Rich passes an escape in a text on to the terminal."""
    file, view = io.StringIO(), RunView()
    console = Console(file=file, width=160, height=60, color_system=None)
    screen = LiveView(console)
    for record in read_records(renamed(tmp_path)):
        view.apply(record)
        with screen.shown(view):
            screen.observe(record, view)
        console.print(screen.drawn(console))
    assert "orchestrator" in file.getvalue()
    assert controls(file.getvalue()) == []
