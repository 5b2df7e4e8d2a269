"""The product as a process, and synthetic records."""

import asyncio
import io
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from loguru import logger

from cli.stage import SCRIPT, Hold, Holding, Process, begin_with_input, clean_environment
from command import done_by
from explorer.cli.app import run_tokens
from explorer.cli.help_text import quick_answer
from explorer.run.run import start
from explorer.schema.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    JournalRecord,
    RoleLoaded,
    RunFinished,
    RunStarted,
    Source,
    SourceRecorded,
    Status,
    ToolFinished,
    ToolStarted,
    TurnTaken,
    WrittenFile,
)
from explorer.schema.messages import StopKind, ToolCall, Turn, Usage
from explorer.schema.settings import Settings

STORY = "What do people say about Tern TLS?"
"""A question about one story of the sample day: a third of what the whole day costs."""
NOON = datetime(2026, 8, 10, 12, 0, tzinfo=UTC)
DIGEST = "0" * 64


@pytest.fixture
def explorer(tmp_path: Path) -> Callable[..., Process]:
    """Run the installed command in an empty folder."""

    def run(*arguments: str, stdin: str = "", **variables: str) -> Process:
        return done_by(begin_with_input(*arguments, cwd=tmp_path, **variables), stdin, 200)

    return run


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Process]]:
    """Run a command line in this process, in the same folder and environment: for where a process adds nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def run(*arguments: str, stdin: str = "", **variables: str) -> Process:
        wanted = clean_environment(tmp_path) | variables
        with monkeypatch.context() as patch:
            for name in set(os.environ) - set(wanted):
                patch.delenv(name)
            for name, value in wanted.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
            capsys.readouterr()
            answer = quick_answer(arguments)
            code = run_tokens(list(arguments)) if answer is None else 0
        shown = capsys.readouterr()
        return Process([*arguments], code, shown.out if answer is None else answer, shown.err)

    yield run
    # With `-v` a command line turned the log on, for a stderr that is gone now.
    logger.remove()
    logger.disable("explorer")


@pytest.fixture(params=["here", pytest.param("process", marks=pytest.mark.slow)])
def typed(request: pytest.FixtureRequest) -> Callable[..., Process]:
    """Run a command line in this process every day, and by a real process among the slow tests."""
    command: Callable[..., Process] = request.getfixturevalue("here" if request.param == "here" else "explorer")
    return command


def sample_run(question: str, folder: Path) -> Path:
    """The folder of a complete run of the sample day."""
    settings = Settings(workspace=folder / "workspace", model="offline", is_sample=True, shell="off")
    result = asyncio.run(start(question, settings))
    assert result.status is Status.COMPLETE
    return result.folder


@pytest.fixture(scope="session")
def story_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a complete run about one story, made once; tests copy it and leave it alone."""
    return sample_run(STORY, tmp_path_factory.mktemp("story"))


@pytest.fixture(scope="session")
def day_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same about the whole sample day."""
    return sample_run("What was notable on the sample day?", tmp_path_factory.mktemp("day"))


@pytest.fixture
def kept_run(story_run: Path, tmp_path: Path) -> Path:
    """A copy of the run about one story in the workspace of this test."""
    return Path(shutil.copytree(story_run, tmp_path / "workspace" / story_run.name))


@pytest.fixture
def kept_day(day_run: Path, tmp_path: Path) -> Path:
    """A copy of the run about the whole day in the workspace of this test, for a long report with many sources."""
    return Path(shutil.copytree(day_run, tmp_path / "workspace" / day_run.name))


@pytest.fixture
def hold() -> Iterator[Hold]:
    """One such service, on loopback."""
    asked, let_go = threading.Event(), threading.Event()
    handler = type("Held", (Holding,), {"asked": asked, "let_go": let_go})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield Hold(f"http://127.0.0.1:{server.server_address[1]}", asked, let_go)
    finally:
        let_go.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def held_run(hold: Hold, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A run in a process of its own, in the middle of its first request to Hacker News."""
    services = {
        "EXPLORER_HN_API_URL": f"{hold.url}/v0",
        "EXPLORER_HN_SEARCH_URL": f"{hold.url}/api/v1",
        "EXPLORER_ALLOW_HOSTS": "127.0.0.1",
        "EXPLORER_TAVILY_URL": hold.url,
    }
    command = [str(SCRIPT), "--model", "offline", "What is notable on Hacker News today?"]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=clean_environment(tmp_path) | services,
    ) as process:
        assert hold.asked.wait(30)
        yield process
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture
def numbered() -> Callable[[Sequence[AnyEvent]], list[JournalRecord]]:
    """Make records of events, one second apart."""

    def number(events: Sequence[AnyEvent]) -> list[JournalRecord]:
        return [
            JournalRecord(v=1, seq=seq, at=NOON + timedelta(seconds=seq), event=event)
            for seq, event in enumerate(events, 1)
        ]

    return number


def turn(agent: str, *calls: ToolCall, cost_usd: float | None = 0.01) -> TurnTaken:
    """A reply that asks for tools, or ends."""
    stop = StopKind.TOOL_USE if calls else StopKind.END
    usage = Usage(input_tokens=900, output_tokens=100)
    reply = Turn(provider="offline", model="offline", blocks=(), calls=calls, stop=stop, usage=usage, cost_usd=cost_usd)
    return TurnTaken(agent=agent, turn=reply, seconds=1.0)


@pytest.fixture
def small_run(numbered: Callable[[Sequence[AnyEvent]], list[JournalRecord]]) -> list[JournalRecord]:
    """A run of an orchestrator and two helpers; the titles and addresses are hostile."""
    ask = ToolCall(id="a", name="call_agent", arguments={"agent_type": "searcher", "task_description": "look"})
    comments = ToolCall(id="b", name="get_hn_comments", arguments={"story_id": 123})
    page = ToolCall(id="c", name="read_webpage", arguments={"url": "https://lantern-db.example/\x1b[2J"})
    written = WrittenFile(path="topics/a.md", title="A\x1b]0;owned\x07", lines=12, bytes=340, sha256=DIGEST)
    source = Source(
        id="S1",
        url="https://evil.example/\x1b[31m",
        title="Red \x1b[31malert\u202e [bold]not markup[/bold]",
        kind="page",
        via="direct",
        retrieved=NOON,
        sha256=DIGEST,
        chars=10,
    )
    lead = "orchestrator"
    return numbered(
        [
            RunStarted(run_id="20260810-120000-x-1234", question="What is new?", engine="0", settings={}),
            RoleLoaded(role=lead, model="offline", system="", tools=(), max_steps=9),
            AgentStarted(agent=lead, role=lead, task="Question: What is new?", max_steps=9),
            turn(lead, ask, ask),
            ToolStarted(agent=lead, call="orchestrator.t1.1", name="call_agent", effect="child"),
            AgentStarted(agent="searcher-1", role="searcher", parent=lead, task="look", max_steps=5),
            AgentStarted(agent="searcher-2", role="searcher", parent=lead, task="look", max_steps=5),
            ToolStarted(agent=lead, call="orchestrator.t1.2", name="call_agent", effect="child"),
            turn("searcher-1", comments, page),
            ToolStarted(agent="searcher-1", call="searcher-1.t1.1", name="get_hn_comments", effect="pure"),
            ToolStarted(
                agent="searcher-1",
                call="searcher-1.t1.2",
                name="read_webpage",
                effect="pure",
                activity="reading lantern-db.example",
            ),
            SourceRecorded(agent="searcher-1", source=source),
            ToolFinished(
                agent="searcher-1",
                call="searcher-1.t1.1",
                name="get_hn_comments",
                success=True,
                content='Comments on [S1] "9 results" (story id 123): 50 of 230 shown.\n<<untrusted 3f9a12bc4d5e6f70>>',
                data={"shown": 50, "unit": "comments", "total": 230},
                files=(),
            ),
            turn("searcher-2", cost_usd=None),
            ToolFinished(
                agent="searcher-2", call="x", name="write_file", success=True, content="Wrote", files=(written,)
            ),
            AgentFinished(agent="searcher-2", status=Status.PARTIAL, reason="step limit", summary="some"),
        ]
    )


@pytest.fixture
def finished_run(small_run: list[JournalRecord]) -> list[JournalRecord]:
    """The same, to its end."""
    end = RunFinished(status=Status.COMPLETE, reason="")
    return [*small_run, JournalRecord(v=1, seq=len(small_run) + 1, at=NOON + timedelta(minutes=2), event=end)]
