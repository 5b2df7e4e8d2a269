"""The plan of a run on the command line: shown, approved from another process, edited, asked for in a terminal."""

import json
import os
import pty
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.stage import SCRIPT, Explorer, Process, clean_environment
from explorer.cli.plan_approval import plan_in, plan_text
from explorer.cli.question import with_plan_mode
from explorer.schema.errors import ConfigError
from explorer.schema.plan import PlanFacts

QUESTION = "What do people say about Tern TLS?"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--plan", "What boots?"], ["--plan=ask", "What boots?"]),
        (["What boots?", "--plan"], ["What boots?", "--plan=ask"]),
        (["--plan", "auto", "What boots?"], ["--plan", "auto", "What boots?"]),
        (["resume", "latest", "--plan", "approve"], ["resume", "latest", "--plan", "approve"]),
        (["resume", "latest", "--plan", "mine.yaml"], ["resume", "latest", "--plan", "mine.yaml"]),
        (["--plan=auto", "--plan?"], ["--plan=auto", "--plan?"]),
        (["--", "--plan", "what"], ["--", "--plan", "what"]),
    ],
)
def test_a_plan_without_a_mode_is_asked_about(given: list[str], meant: list[str]) -> None:
    """A question behind the flag is no mode, and a word behind `--` no flag."""
    assert with_plan_mode(given) == meant


def _json(process: Process) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(process.stdout)
    return found


@pytest.mark.slow
def test_a_plan_waits_between_processes(explorer: Explorer, tmp_path: Path) -> None:
    """One process proposes and ends with 7, another one changes and approves; each says what the state is."""
    asked = explorer("demo", QUESTION, "--plan", "--reflect", "--output-format", "json")
    waiting = _json(asked)
    assert (asked.returncode, waiting["status"], waiting["report"]) == (7, "waiting", None)
    assert waiting["plan"]["state"] == "waiting"
    assert "--plan approve" in asked.stderr
    shown = explorer("show")
    assert "waits for your decision" in shown.stdout
    assert "waiting" in explorer("runs").stdout
    assert explorer("report").returncode == 5
    again = explorer("resume", "latest")
    assert again.returncode == 7
    assert "q1  searcher" in again.stdout
    for name, content, words in (
        ("no.yaml", "questions: []", "field `questions`"),
        ("odd.yaml", "{", "cannot be read as a plan"),
        ("who.json", '{"questions": [{"question": "Who?", "helper": "nobody"}]}', "the helper 'nobody'"),
    ):
        (tmp_path / name).write_text(content)
        refused = explorer("resume", "latest", "--plan", name)
        assert refused.returncode == 2
        assert words in refused.stderr
    assert "there is no file" in explorer("resume", "latest", "--plan=gone").stderr
    plan = waiting["plan"]
    plan["questions"] = plan["questions"][:1]
    (tmp_path / "mine.json").write_text(json.dumps(waiting))
    done = explorer("resume", "latest", "--plan", "mine.json", "--output-format", "json")
    finished = _json(done)
    assert (done.returncode, finished["status"], finished["plan"]["state"]) == (0, "complete", "edited")
    assert [(one["question"]["id"], one["progress"]) for one in finished["plan"]["questions"]] == [("q1", "answered")]
    assert [helper["agent"] for helper in finished["helpers"]] == ["searcher-1", "writer-1"]
    assert "q1  answered  searcher-1" in explorer("show").stdout
    late = explorer("resume", "latest", "And now?", "--plan", "approve")
    assert "a plan is approved without a message" in late.stderr


@pytest.mark.slow
def test_a_rejected_plan_and_one_that_is_only_shown(explorer: Explorer) -> None:
    """The first ends as partial without a helper; the second goes on by itself."""
    explorer("demo", QUESTION, "--plan", "-q")
    rejected = _json(explorer("resume", "latest", "--plan", "reject", "--output-format", "json"))
    assert (rejected["status"], rejected["cause"], rejected["agents"]) == ("partial", "plan_rejected", 1)
    shown = explorer("demo", QUESTION, "--plan", "auto")
    assert shown.returncode == 0
    assert "plan approved by the settings" in shown.stderr


class Terminal:
    """A process in a terminal of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]", descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self.seen = ""

    def wait_for(self, words: str) -> None:
        """Read until words were shown."""
        while words not in self.seen:
            self.seen += self._read()

    def _read(self) -> str:
        try:
            found = os.read(self._descriptor, 65_536).decode("utf-8", "replace")
        except OSError:
            found = ""
        assert found, self.seen
        return found

    def say(self, words: str) -> None:
        """Type a line."""
        os.write(self._descriptor, f"{words}\n".encode())

    def end(self) -> int:
        """Read to the end, and return the exit code."""
        try:
            while found := os.read(self._descriptor, 65_536):
                self.seen += found.decode("utf-8", "replace")
        except OSError:
            pass
        return self.process.wait()


@pytest.fixture
def terminal(tmp_path: Path) -> Callable[..., Any]:
    """Run the installed command in a terminal."""

    @contextmanager
    def run(*words: str, **variables: str) -> Generator[Terminal]:
        own, other = pty.openpty()
        environment = clean_environment(tmp_path) | {"TERM": "xterm", **variables}
        with subprocess.Popen(
            [str(SCRIPT), *words], cwd=tmp_path, env=environment, stdin=other, stdout=other, stderr=other
        ) as process:
            os.close(other)
            try:
                yield Terminal(process, own)
            finally:
                process.kill()
                os.close(own)

    return run


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_terminal_asks_and_a_kill_at_the_question_loses_nothing(
    terminal: Callable[..., Any], explorer: Explorer, tmp_path: Path
) -> None:
    """The plan waits on disk while it is asked about: killed there, it is edited and approved in another terminal."""
    with terminal("demo", QUESTION, "--plan") as first:
        first.wait_for("decide later")
        first.process.kill()
        assert first.end() == -9
    assert _json(explorer("show", "--output-format", "json"))["status"] == "waiting"
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\ngrep -v "^  *#" "$1" | head -8 > "$1.new" && mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    with terminal("resume", "latest", EDITOR=str(editor)) as second:
        second.wait_for("decide later")
        second.say("")
        assert second.end() == 7
    with terminal("resume", "latest", EDITOR=str(editor)) as third:
        third.wait_for("decide later")
        third.say("edit")
        assert third.end() == 0
        assert "approved as you changed it" in third.seen or "complete" in third.seen
    facts = _json(explorer("show", "--output-format", "json"))
    assert facts["plan"]["state"] == "edited"
    assert [one["question"]["id"] for one in facts["plan"]["questions"]] == ["q1"]


def test_a_plan_is_read_as_it_is_written(tmp_path: Path) -> None:
    """What the editor is given comes back as the same questions; a text alone is a question."""
    facts = PlanFacts.model_validate(
        {
            "state": "waiting",
            "understanding": "Which: machine?",
            "enough_when": "",
            "questions": [
                {
                    "question": {
                        "id": "q1",
                        "question": "What: boots?",
                        "sources": ["a"],
                        "helper": "searcher",
                        "lookups": 2,
                    },
                    "progress": "planned",
                }
            ],
            "cost_usd": None,
            "spent_usd": None,
            "rounds": 0,
        }
    )
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(facts))
    assert plan_in(path).questions == (facts.questions[0].question,)
    path.write_text("questions: [Who?]\n")
    assert plan_in(path).questions[0].question == "Who?"
    path.write_text("questions: [{question: Who?, colour: red}]\n")
    with pytest.raises(ConfigError, match=r"questions\.0\.colour"):
        plan_in(path)
