"""The web page on a large run: the server's time for its pages, the way of an event to the tabs, memory.

    uv run python bench/web.py [--agents 500] [--events 20000] [--tabs 20] [--live 40] [--json]

The journal of a run is written with so many agents and records. `explorer serve` runs as a process of its own; its CPU
time and memory are read from /proc. For the latency, records are appended to the journal as another process would do,
and each tab notes when it was sent a state that has the record. They are of the kind that takes longest: the line of a
call without effect waits up to 0.1 s in the journal for the next one. Figures depend on the machine.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2

from explorer.journal.codec import encode_all
from explorer.journal.journal import Journal
from explorer.schema.events import (
    AgentStarted,
    AnyEvent,
    JournalRecord,
    RunStarted,
    SourceRecorded,
    ToolFinished,
    ToolStarted,
    TurnTaken,
    WrittenFile,
)
from explorer.schema.events import Source as StoredSource
from explorer.schema.settings import Settings
from explorer.testing import says

RUN = "20260801-090000-large-run-0001"
LEAD = "orchestrator"
EVENTS_OF_A_TURN = 4
TEXT = "The harbour plant fed 12 % more power into the grid than a year before. " * 12
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class WebFigures:
    """What was measured; times in seconds, memory in MB."""

    agents: int
    events: int
    tabs: int
    journal_mb: float
    first_page_cpu: float
    """CPU time of the server for the first page of the run, which reads the whole journal."""
    next_page_cpu: float
    timeline_cpu: float
    page_kb: float
    event_median: float
    """From the write of a record until a tab has it."""
    event_slowest: float
    cpu_per_event: float
    """CPU time of the server for one record to all tabs."""
    memory_before: float
    memory_after: float


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--agents", type=int, default=500)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--tabs", type=int, default=20)
    parser.add_argument("--live", type=int, default=40, help="records that are appended while the tabs watch")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = asyncio.run(_measured(Path(place), asked))
    if asked.json:
        print(json.dumps(asdict(found)))
        return 0
    for name, value in asdict(found).items():
        print(f"{name.replace('_', ' '):16} {value:,.4g}" if isinstance(value, float) else f"{name:16} {value:,}")
    return 0


def large_run(agents: int, events: int) -> Iterator[AnyEvent]:
    """Yield the records of a run with so many agents, all at work in turns."""
    yield RunStarted(run_id=RUN, question="How is the harbour plant?", engine="0", settings=Settings().public())
    yield AgentStarted(agent=LEAD, role=LEAD, task="How is the harbour plant?", max_steps=1_000)
    names = [f"searcher-{number}" for number in range(1, agents)]
    for name in names:
        yield AgentStarted(agent=name, role="searcher", parent=LEAD, parent_call="", task=TEXT[:160], max_steps=400)
    written, turns = agents + 1, dict.fromkeys(names, 0)
    while written < events:
        name = names[written // EVENTS_OF_A_TURN % len(names)]
        turns[name] += 1
        yield from one_turn(name, turns[name], written)
        written += EVENTS_OF_A_TURN


def one_turn(agent: str, turn: int, number: int) -> Iterator[AnyEvent]:
    """Yield a turn with one search: four records."""
    key = f"{agent}.t{turn}.1"
    identifier = f"S{number}"
    source = {
        "id": identifier, "url": f"https://plant.example/{number}", "title": f"Page {number}", "kind": "page",
        "via": "direct", "retrieved": "2026-08-01T09:00:00Z", "sha256": "0" * 64, "chars": len(TEXT),
    }  # fmt: skip
    yield TurnTaken(agent=agent, turn=says("I look.", ("web_search", {"query": f"plant {number}"})), seconds=0.5)
    yield ToolStarted(agent=agent, call=key, name="web_search", effect="pure", activity=f"searching plant {number}")
    yield SourceRecorded(source=StoredSource.model_validate(source))
    file = WrittenFile(path=f"notes/{agent}.md", title="Notes", lines=turn, bytes=100 * turn, sha256="1" * 64)
    yield ToolFinished(
        agent=agent, call=key, name="web_search", success=True, content=TEXT, sources=(identifier,), files=(file,)
    )


def write_run(workspace: Path, events: Sequence[AnyEvent]) -> Path:
    """Write the journal of a run, and return its folder."""
    folder = workspace / RUN
    (folder / ".explorer").mkdir(parents=True)
    began = datetime(2026, 8, 1, 9, tzinfo=UTC)
    records = [
        JournalRecord(v=1, seq=number, at=began + timedelta(seconds=number / 10), event=event)
        for number, event in enumerate(events, 1)
    ]
    (folder / ".explorer" / "journal.jsonl").write_bytes(encode_all(records))
    (folder / "question.txt").write_text("How is the harbour plant?")
    return folder


async def _measured(place: Path, asked: argparse.Namespace) -> WebFigures:
    folder = write_run(place / "workspace", list(large_run(asked.agents, asked.events)))
    size = (folder / ".explorer" / "journal.jsonl").stat().st_size / 1e6
    command = [sys.executable, "-m", "explorer", "serve", "--model", "offline", "--port", "0", "--token", "none"]
    environment = {"HOME": str(place), "PATH": os.environ["PATH"], "EXPLORER_SHELL": "off"}  # noqa: TID251 - a script
    with subprocess.Popen(command, cwd=place, env=environment, stderr=subprocess.PIPE, text=True) as server:  # noqa: ASYNC220 - nothing else runs
        try:
            assert server.stderr is not None
            address = re.findall(r"http://\S+/", server.stderr.readline())[0]
            async with httpx2.AsyncClient(base_url=address, timeout=120, trust_env=False) as client:
                return await _pages_and_events(client, server.pid, folder, size, asked)
        finally:
            server.terminate()


async def _pages_and_events(
    client: httpx2.AsyncClient, server: int, folder: Path, size: float, asked: argparse.Namespace
) -> WebFigures:
    await client.get("/nothing")
    before, memory = _cpu(server), _memory(server)
    page = (await client.get(f"/runs/{RUN}")).text
    first = _cpu(server) - before
    await client.get(f"/runs/{RUN}")
    second = _cpu(server) - before - first
    await client.get(f"/runs/{RUN}/timeline")
    timeline = _cpu(server) - before - first - second
    start = _cpu(server)
    waits = await _latencies(client, folder, asked.tabs, asked.live)
    return WebFigures(
        agents=asked.agents,
        events=asked.events,
        tabs=asked.tabs,
        journal_mb=size,
        first_page_cpu=first,
        next_page_cpu=second,
        timeline_cpu=timeline,
        page_kb=len(page) / 1e3,
        event_median=statistics.median(waits),
        event_slowest=max(waits),
        cpu_per_event=(_cpu(server) - start) / max(1, asked.live),
        memory_before=memory,
        memory_after=_memory(server),
    )


async def _latencies(client: httpx2.AsyncClient, folder: Path, tabs: int, count: int) -> list[float]:
    """Append records one by one; return the seconds that each took to each tab."""
    written: dict[int, float] = {}
    waits: list[float] = []
    ready = asyncio.Semaphore(0)
    journal = Journal.open(folder / ".explorer", lambda: datetime.now(UTC))
    last = journal.append
    start = len(journal.records)

    async def watch() -> None:
        async with client.stream("GET", f"/runs/{RUN}/live?after={start}") as answer:
            ready.release()
            seen = start
            async for number in _numbers(answer.aiter_lines()):
                now = time.monotonic()
                waits.extend(now - written[one] for one in range(seen + 1, number + 1) if one in written)
                seen = max(seen, number)
                if seen >= start + count:
                    return

    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        for _ in range(tabs):
            group.create_task(watch())
        for _ in range(tabs):
            await ready.acquire()
        await asyncio.sleep(1)
        for number in range(count):
            event = ToolStarted(agent="searcher-1", call=f"x.{number}", name="web_search", effect="pure")
            record = await last(event)
            written[record.seq] = time.monotonic()
            await asyncio.sleep(0.3)
    journal.close()
    return waits


async def _numbers(lines: AsyncIterator[str]) -> AsyncIterator[int]:
    async for line in lines:
        if line.startswith("id: "):
            yield int(line[4:].partition("-")[0])


def _cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def _memory(process: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1e3 if found else 0.0


if __name__ == "__main__":
    raise SystemExit(main())
