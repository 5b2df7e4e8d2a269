"""The main job from the command line, over real HTTP and the real SDKs, killed and resumed."""

import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from command import begin, explorer, explorer_here
from explorer.schema.errors import NotFoundError
from explorer.schema.events import AgentFinished, AgentStarted, ToolFinished, TurnTaken
from model_servers import Asked, ModelServer, OpenAIResponsesServer, OpenAIServer, Reply, ThinkingServer
from team_script import NOTES, body_of, cited_references, last_json, only_run, records_of, role_of, team

WIRES: dict[str, tuple[type[ModelServer], str, dict[str, str]]] = {
    "anthropic": (ThinkingServer, "ANTHROPIC_BASE_URL", {}),
    "openai": (OpenAIServer, "OPENAI_BASE_URL", {}),
    "openai-responses": (
        OpenAIResponsesServer,
        "OPENAI_BASE_URL",
        {"EXPLORER_MODEL": "openai-responses:model-a", "EXPLORER_EFFORT": "low"},
    ),
}
"""By wire: the server, the variable with its address, and what has to be set besides."""
QUESTION = "How was May for the plant?"
Command = Callable[..., "subprocess.CompletedProcess[str]"]
ONE_EVERY_DAY = [
    pytest.param("openai-responses", explorer_here, id="here-openai-responses"),
    *(pytest.param(wire, explorer, id=wire, marks=pytest.mark.slow) for wire in WIRES),
]
"""The wire, and how the command line is run where nothing is killed: every day in the tests' own process."""


def reasoning(asked: Asked) -> Reply:
    """The team, whose models reason before whatever they say: their reasoning has to come back right."""
    return replace(team(asked), thinking="I weigh what there is.")


@dataclass(frozen=True)
class Whole:
    """A run that nothing disturbed."""

    workspace: Path
    stdout: str
    requests: int
    """How many the model got."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Command], Whole]:
    """The main job by a wire's name, done once for each; tests look at it and leave it alone."""

    @cache
    def done(wire: str, run: Command) -> Whole:
        folder = tmp_path_factory.mktemp(wire)
        (folder / "notes.md").write_text(NOTES)
        server_class, variable, more = WIRES[wire]
        words = (QUESTION, "--file", "notes.md", "--output-format", "json")
        with server_class(reasoning) as server:
            shown = run(*words, cwd=folder, settings={variable: server.url, **more})
        assert shown.returncode == 0, shown.stderr
        return Whole(folder / "workspace", shown.stdout, len(server.requests))

    return done


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
def test_the_main_job_by_base_url_alone(wire: str, whole: Callable[[str, Command], Whole]) -> None:
    """A base URL is all it takes: helpers in parallel, files, a drill-down, and a report with resolved citations."""
    answer = last_json(whole(wire, explorer).stdout)
    assert answer["status"] == "complete"
    assert (answer["citations"], answer["verdicts"]) == (
        1,
        {"supported": 1, "not_found": 0, "elsewhere": 0, "source_missing": 0, "unchecked": 0},
    )
    folder = only_run(whole(wire, explorer).workspace)
    report = (folder / "report.md").read_text()
    assert "rose by 12 % in May [1]" in report
    assert cited_references(report) == {"S1"}
    assert (folder / ".explorer" / "sources" / "S1.md").is_file()
    events = [record.event for record in records_of(folder)]
    started = Counter(event.role for event in events if isinstance(event, AgentStarted))
    assert started == {"orchestrator": 1, "searcher": 3, "analyzer": 1, "writer": 1}
    drilled = [e for e in events if isinstance(e, ToolFinished) and e.agent == "orchestrator" and e.name == "read_file"]
    assert all(event.success for event in drilled)
    assert len(drilled) == 2
    wrote = {event.agent for event in events if isinstance(event, ToolFinished) and event.files}
    assert wrote == {"searcher-1", "searcher-2", "searcher-3", "analyzer-1", "writer-1"}


def _stall_gamma(asked: Asked) -> Reply:
    """Like the team, but the third searcher's second reply never comes."""
    if role_of(asked) == "searcher" and "gamma" in asked.task and asked.results:
        return Reply(text="I", stalls="silent")
    return reasoning(asked)


def _wait_until_two_searchers_ended(folder: Path, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            run = only_run(folder)
            ended = [r for r in records_of(run) if isinstance(r.event, AgentFinished)]
        except (ValueError, OSError, NotFoundError):  # the folder is there before its journal
            ended = []
        if len(ended) == 2:
            return
        time.sleep(0.05)
    raise AssertionError("two searchers never ended")


@pytest.mark.parametrize(("wire", "run"), ONE_EVERY_DAY)
def test_kill_in_the_middle_of_a_fan_out_then_resume(
    wire: str, run: Command, tmp_path: Path, whole: Callable[[str, Command], Whole]
) -> None:
    """After kill -9, what was finished is not asked again, and the report equals that of an undisturbed run."""
    server_class, variable, more = WIRES[wire]
    (tmp_path / "notes.md").write_text(NOTES)
    words = (QUESTION, "--file", "notes.md", "--workspace", "killed")
    with server_class(_stall_gamma) as server:
        process = begin(*words, cwd=tmp_path, settings={variable: server.url, **more})
        try:
            _wait_until_two_searchers_ended(tmp_path / "killed")
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
    folder = only_run(tmp_path / "killed")
    before = records_of(folder)
    with server_class(reasoning) as server:
        given = {variable: server.url, **more}
        resumed = run("resume", "latest", "--workspace", "killed", cwd=tmp_path, settings=given)
        asked_again = len(server.requests)
    assert resumed.returncode == 0, resumed.stderr
    after = records_of(folder)
    assert after[: len(before)] == before
    turns_before = sum(isinstance(record.event, TurnTaken) for record in before)
    assert asked_again == whole(wire, run).requests - turns_before
    finished = Counter(r.event.call for r in after if isinstance(r.event, ToolFinished))
    assert set(finished.values()) == {1}
    undisturbed = (only_run(whole(wire, run).workspace) / "report.md").read_text()
    assert body_of((folder / "report.md").read_text()) == body_of(undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
def test_a_follow_up_goes_on_with_the_same_conversations(
    wire: str, tmp_path: Path, whole: Callable[[str, Command], Whole]
) -> None:
    """A message to a finished run reaches the orchestrator, and the helper it asks again remembers its work."""

    def script(asked: Asked) -> Reply:
        if not any("And June?" in output for output in asked.said):
            return reasoning(asked)
        if role_of(asked) == "orchestrator":
            steps = [
                Reply(
                    calls=[
                        (
                            "call_agent",
                            {"agent_type": "writer", "agent_id": "writer-1", "task_description": "And June?"},
                        )
                    ]
                ),
                Reply(calls=[("finish_exploration", {"summary": "June is added."})]),
            ]
            return steps[len(asked.results) - 8]
        if len(asked.results) == 2:
            edit = {"filepath": "report.md", "old_string": "3 June [S1].", "new_string": "3 June [S1], as is known."}
            return Reply(calls=[("edit_file", edit)])
        return Reply(text="June is added [S1].")

    server_class, variable, more = WIRES[wire]
    shutil.copytree(whole(wire, explorer).workspace, tmp_path / "workspace", symlinks=True)
    with server_class(script) as server:
        server.first_number = 1_000
        again = explorer("resume", "latest", "And June?", cwd=tmp_path, settings={variable: server.url, **more})
    assert again.returncode == 0, again.stderr
    folder = only_run(tmp_path / "workspace")
    assert "3 June [1], as is known." in (folder / "report.md").read_text()
    assert sum(isinstance(r.event, AgentStarted) for r in records_of(folder)) == 6
