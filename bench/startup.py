"""What starting costs: to the help, to a run's first line, and from a long journal to the first request."""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from scenarios import JsonObject, prose
from wires import ANTHROPIC, OPENAI

from explorer.journal.codec import encode_all
from explorer.run.hooks import RunHooks
from explorer.run.run import resume
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.events import (
    JOURNAL_VERSION,
    ORCHESTRATOR,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    JournalRecord,
    RoleLoaded,
    RunStarted,
    Status,
    ToolFinished,
    ToolStarted,
    TurnTaken,
)
from explorer.schema.messages import Request, StopKind, ToolCall, Turn, Usage
from explorer.schema.settings import Limits, Settings

HELPER_TURNS = 9
QUESTION = "What did the plant do?"


def start_rows(wires: Sequence[str]) -> list[JsonObject]:
    """CPU seconds of whole processes, the median of three."""
    sdks = {OPENAI: "openai", ANTHROPIC: "anthropic"}
    commands = {
        "python": ["-c", "pass"],
        "help": ["-m", "explorer", "--help"],
        "engine": ["-c", "import explorer.run.run"],
    }
    commands |= {f"import {sdks[wire]}": ["-c", f"import {sdks[wire]}"] for wire in wires}
    costs = {name: sorted(cpu_of(words) for _ in range(3))[1] for name, words in commands.items()}
    for wire in wires:
        lines, requests = zip(*(cpu_of_question(wire) for _ in range(3)), strict=True)
        costs |= {f"first line, {wire}": sorted(lines)[1], f"first request, {wire}": sorted(requests)[1]}
    return [{"scenario": "start", "contestant": name, "cpu_s": cpu} for name, cpu in costs.items()]


class Asked(BaseHTTPRequestHandler):
    """A model server that says when it is first asked, and answers nothing."""

    has_come: threading.Event

    def do_POST(self) -> None:
        """Take note of the request, and hang up."""
        self.has_come.set()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's names
        """Stay silent."""


def cpu_of_question(wire: str) -> tuple[float, float]:
    """CPU seconds of `explorer "question"` until its first line, and until its first request."""
    has_come = threading.Event()
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), type("One", (Asked,), {"has_come": has_come})) as server,
        tempfile.TemporaryDirectory(prefix="explorer-bench-") as folder,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        service = {"ANTHROPIC_BASE_URL": url} if wire == ANTHROPIC else {"OPENAI_BASE_URL": f"{url}/v1"}
        model = "anthropic:bench" if wire == ANTHROPIC else "openai-chat:bench"
        environment = {"HOME": folder, "EXPLORER_SHELL": "off", **service}
        words = [sys.executable, "-m", "explorer", "--model", model, QUESTION]
        with subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stderr is not None
            process.stderr.readline()
            line = cpu_so_far(process.pid)
            assert has_come.wait(60), process.stderr.read().decode()
            request = cpu_so_far(process.pid)
            process.kill()
        server.shutdown()
    return line, request


def cpu_so_far(pid: int) -> float:
    """User and system seconds of a process that works."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of(words: Sequence[str]) -> float:
    """User and system seconds of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, 3)


def resume_row(events: int) -> JsonObject:
    """CPU from the call of `resume` to its first request, in a process of its own."""
    done = subprocess.run([sys.executable, __file__, str(events)], capture_output=True, text=True, check=True)
    return {"scenario": f"resume-{events}", "contestant": "engine", **json.loads(done.stdout)}


class FirstRequest:
    """A model that notes when it was first asked, and is down."""

    def __init__(self) -> None:
        self.cpu: float | None = None

    async def generate(self, request: Request) -> Turn:
        """Note the time.

        Raises:
            ModelError: Always.
        """
        self.cpu = self.cpu or time.process_time()
        raise ModelError(ModelFault.CREDENTIALS, f"{request.agent} was asked")


def journal_of(count: int, settings: Settings) -> list[JournalRecord]:
    """A run that was cut off while its orchestrator was about to ask again."""
    now = datetime.now(UTC)
    return [
        JournalRecord(v=JOURNAL_VERSION, seq=seq, at=now, event=event)
        for seq, event in enumerate(_events(count, settings.public()), 1)
    ]


def _events(count: int, settings: JsonObject) -> list[AnyEvent]:
    events: list[AnyEvent] = [RunStarted(run_id="run", question=QUESTION, engine="bench", settings=settings)]
    events += [
        RoleLoaded(role=role, model="own", system=prose(3, 3_000), tools=(), max_steps=1_000)
        for role in (ORCHESTRATOR, "searcher")
    ]
    events.append(AgentStarted(agent=ORCHESTRATOR, role=ORCHESTRATOR, task=QUESTION, max_steps=1_000))
    number = 0
    while len(events) < count:
        number += 1
        events += _helper(number)
    return events


def _helper(number: int) -> list[AnyEvent]:
    """One turn of the orchestrator's, which calls one helper, and all that the helper does."""
    agent, parent = f"searcher-{number}", f"{ORCHESTRATOR}.t{number}.1"
    asked = {"agent_type": "searcher", "task_description": prose(number, 300)}
    started = AgentStarted(
        agent=agent, role="searcher", parent=ORCHESTRATOR, parent_call=parent, task=prose(number, 300), max_steps=50
    )
    events: list[AnyEvent] = [
        _turn(ORCHESTRATOR, ToolCall(id="call_1", name="call_agent", arguments=asked)),
        ToolStarted(agent=ORCHESTRATOR, call=parent, name="call_agent", effect="child"),
        started,
    ]
    for step in range(1, HELPER_TURNS + 1):
        key = f"{agent}.t{step}.1"
        events += [
            _turn(agent, ToolCall(id="call_1", name="bench_read", arguments={"number": step})),
            ToolStarted(agent=agent, call=key, name="bench_read", effect="pure"),
            ToolFinished(agent=agent, call=key, name="bench_read", success=True, content=prose(step, 1_000)),
        ]
    ended = AgentFinished(agent=agent, status=Status.COMPLETE, reason="answered", summary=prose(number, 400))
    content = json.dumps({"agent_id": agent, "summary": ended.summary})
    shown = ToolFinished(agent=ORCHESTRATOR, call=parent, name="call_agent", success=True, content=content)
    return [*events, _turn(agent), ended, shown]


def _turn(agent: str, *calls: ToolCall) -> TurnTaken:
    text = prose(1, 120)
    wire = [{"id": call.id, "function": {"name": call.name, "arguments": json.dumps(call.arguments)}} for call in calls]
    turn = Turn(
        provider="openai-chat",
        model="own",
        blocks=({"role": "assistant", "content": text, "tool_calls": wire},),
        text=text,
        calls=calls,
        stop=StopKind.TOOL_USE if calls else StopKind.END,
        usage=Usage(input_tokens=1_000, output_tokens=50),
    )
    return TurnTaken(agent=agent, turn=turn, seconds=1.0)


def main() -> None:
    """Write a journal of so many events, resume it, and print the CPU until the first request."""
    with tempfile.TemporaryDirectory(prefix="explorer-bench-") as temporary:
        limits = Limits(max_steps=None, max_time_s=None, max_agents=10_000)
        settings = Settings(workspace=Path(temporary), shell="off", limits=limits)
        folder = settings.workspace / "run"
        (folder / ".explorer").mkdir(parents=True)
        records = journal_of(int(sys.argv[1]), settings)
        (folder / ".explorer" / "journal.jsonl").write_bytes(encode_all(records))
        client = FirstRequest()
        began = time.process_time()
        try:
            asyncio.run(resume(folder, settings, hooks=RunHooks(client=client)))
        except ModelError:
            assert client.cpu is not None
            cpu = round(client.cpu - began, 3)
            print(
                json.dumps({"events": len(records), "cpu_s": cpu, "ms_an_event": round(1000 * cpu / len(records), 3)})
            )


if __name__ == "__main__":
    main()
