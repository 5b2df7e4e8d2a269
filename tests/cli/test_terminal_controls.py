"""What a page or a model writes never controls the user's terminal, also where a pipe ends at one."""

import json
from pathlib import Path

import pytest

from cli.stage import Explorer

TITLE = "\x1b]0;owned\x07"
RED = "\x1b[31m"
EIGHT_BIT = "\x9b31m"
KEPT = "\n\t| a | 光 | 👩\u200d🔬 |\n"
"""With a joined emoji, whose joiner is no control character."""


@pytest.mark.parametrize("words", [("report", "latest"), ("watch", "latest", "--speed", "max")], ids=" ".join)
def test_a_report_in_a_pipe_has_no_control_sequence(kept_run: Path, here: Explorer, words: tuple[str, ...]) -> None:
    """As text they are dropped whole; as JSON they are escapes, and the text is complete."""
    report = kept_run / "report.md"
    text = f"{report.read_text()}{TITLE}{RED}end{EIGHT_BIT}{KEPT}"
    report.write_text(text)
    done = here(*words)
    assert "end\n\t| a | 光 | 👩\u200d🔬 |" in done.stdout
    assert "owned" not in done.stdout
    assert not [c for c in done.stdout if (c < " " and c not in "\n\t") or "\x7f" <= c < "\xa0"]
    done = here(*words, "--output-format", "json")
    assert json.loads(done.stdout)["report_text"].endswith(f"{TITLE}{RED}end{EIGHT_BIT}{KEPT}")
    assert not [c for c in done.stdout if (c < " " and c != "\n") or "\x7f" <= c < "\xa0"]
