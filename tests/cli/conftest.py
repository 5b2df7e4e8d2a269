"""The product as a process, and synthetic records."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from explorer.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    Record,
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
from explorer.messages import StopKind, ToolCall, Turn, Usage

Process = subprocess.CompletedProcess[str]
NOON = datetime(2026, 8, 10, 12, 0, tzinfo=UTC)
DIGEST = "0" * 64


def clean_environment(home: Path) -> dict[str, str]:
    """No keys, no settings of ours, a home of its own; coverage's own variables stay."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("COV")}
    return {**kept, "PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "100"}


@pytest.fixture
def explorer(tmp_path: Path) -> Callable[..., Process]:
    """Run the installed command in an empty folder."""
    script = Path(sys.executable).with_name("explorer")

    def run(*arguments: str, stdin: str = "", **variables: str) -> Process:
        return subprocess.run(
            [str(script), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=clean_environment(tmp_path) | variables,
            timeout=50,
            check=False,
        )

    return run


@pytest.fixture
def numbered() -> Callable[[Sequence[AnyEvent]], list[Record]]:
    """Make records of events, one second apart."""

    def number(events: Sequence[AnyEvent]) -> list[Record]:
        return [
            Record(v=1, seq=seq, at=NOON + timedelta(seconds=seq), event=event) for seq, event in enumerate(events, 1)
        ]

    return number


def turn(agent: str, *calls: ToolCall, cost_usd: float | None = 0.01) -> TurnTaken:
    """A reply that asks for tools, or ends."""
    stop = StopKind.TOOL_USE if calls else StopKind.END
    usage = Usage(input_tokens=900, output_tokens=100)
    reply = Turn(provider="offline", model="offline", blocks=(), calls=calls, stop=stop, usage=usage, cost_usd=cost_usd)
    return TurnTaken(agent=agent, turn=reply, seconds=1.0)


@pytest.fixture
def small_run(numbered: Callable[[Sequence[AnyEvent]], list[Record]]) -> list[Record]:
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
            turn("searcher-1", comments, page),
            SourceRecorded(agent="searcher-1", source=source),
            ToolFinished(
                agent="searcher-1",
                call="searcher-1.t1.1",
                name="get_hn_comments",
                success=True,
                content='Comments on [S1] "9 results" (story id 123): 50 of 230 shown.\n<<untrusted 3f9a12bc4d5e>>',
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
def finished_run(small_run: list[Record]) -> list[Record]:
    """The same, to its end."""
    end = RunFinished(status=Status.COMPLETE, reason="")
    return [*small_run, Record(v=1, seq=len(small_run) + 1, at=NOON + timedelta(minutes=2), event=end)]
