"""What a limit costs at servers that count honestly, falsely or not at all: the table of `make overshoot`.

The server keeps its own bill, a token for four bytes in either direction, of everything it was sent and sent back;
nothing of it comes from what it reports. A team that never ends works against it, eight helpers at once.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from command import IMPORTED, forked, prepared
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.run.run import resume, start
from explorer.schema.events import ToolStarted, TurnTaken
from explorer.schema.limits import Limits
from explorer.schema.settings import Settings
from faults.stage import QUESTION, WIRES, hooks, only_run, settings, settings_at
from model_servers import Asked, Reply
from team_script import role_of

LIMITS: dict[str, float] = {"max_cost_usd": 0.25, "max_tokens": 200_000, "max_steps": 40, "max_tool_calls": 40}
KILL_LIMITS: dict[str, float] = {"max_cost_usd": 8.5, "max_tokens": 5_500_000}
"""With room for twenty requests at once, eight times over."""


@dataclass(frozen=True)
class Asking:
    """The model that is asked over a wire, and what it bills."""

    model: str
    input_usd: float = 1e-6
    """Of a token; these are as the settings of these tests have them."""
    output_usd: float = 5e-6
    times: int = 1
    """How much of a money limit it needs to do the same."""


MODELS = {
    "anthropic": Asking("anthropic:claude-sonnet-5-5", 2e-6, 10e-6, 2),
    "openai": Asking("openai:model-a"),
    "openai-responses": Asking("openai-responses:model-a"),
}
PARTS, MANY_PARTS = 8, 20
"""Helpers at once; so many where processes are killed."""
WORDS = "The panels on the south roof gave more than those on the north roof. " * 30


def _as_is(reply: Reply, bill: tuple[int, int]) -> Reply:
    return replace(reply, usage={"input": bill[0], "output": bill[1]})


SERVERS: dict[str, Callable[[Reply, tuple[int, int], int], Reply]] = {
    "honest": lambda reply, bill, _number: _as_is(reply, bill),
    "no usage": lambda reply, _bill, _number: replace(reply, usage={}),
    "zero": lambda reply, _bill, _number: _as_is(reply, (0, 0)),
    "negative": lambda reply, _bill, _number: _as_is(reply, (-9_000, -9_000)),
    "cut at the end": lambda reply, bill, number: replace(_as_is(reply, bill), cut="terminal" if number % 3 else ""),
}
"""What a server reports, by its own bill and the number of the request."""

KILLS = "8 kills"
MAX_KILLS = 8


@dataclass
class Biller:
    """A team that never ends, and the bill for it."""

    wire: str
    server: str
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    under_way: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released for each request that is billed and left without a reply."""
    left: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """Which those were, by task and number of calls: asked again, they get one."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, asked: Asked) -> Reply:
        """Answer, and write down what it costs."""
        reply = _endless(asked, MANY_PARTS if self.server == KILLS else PARTS)
        output = reply.text + "".join(json.dumps(arguments) for _, arguments in reply.calls)
        bill = len(json.dumps(asked.body, ensure_ascii=False)) // 4, len(output) // 4
        with self._lock:
            self.requests += 1
            number = self.requests
            self.input_tokens += bill[0]
            self.output_tokens += bill[1]
        if self.server != KILLS:
            return SERVERS[self.server](reply, bill, number)
        key = "".join(asked.said), len(asked.calls)
        if role_of(asked) == "searcher" and len(asked.calls) % 2 and key not in self.left:
            self.left.add(key)
            self.under_way.release()
            return replace(_as_is(reply, bill), stalls="silent")
        return _as_is(reply, bill)

    @property
    def usd(self) -> float:
        """What was billed in all."""
        asking = MODELS[self.wire]
        return self.input_tokens * asking.input_usd + self.output_tokens * asking.output_usd


def _endless(asked: Asked, parts: int) -> Reply:
    if role_of(asked) == "orchestrator":
        rounds = f"round {len(asked.calls)}"
        tasks = [f"Look again, {rounds}, part {number}." for number in range(parts)]
        return Reply(calls=[("call_agent", {"agent_type": "searcher", "task_description": task}) for task in tasks])
    place = f"parts/{abs(hash(asked.task))}-{len(asked.calls)}.md"
    return Reply(text=WORDS, calls=[("write_file", {"filepath": place, "content": WORDS})])


@dataclass(frozen=True)
class Overshoot:
    """What one run used of its limit, as shares of it."""

    billed: float
    """By the server."""
    booked: float
    """By the run."""
    under_way: tuple[int, ...] = ()
    """At each kill, how many requests were billed and had no reply."""


def kill_again_and_again(wire: str, limit: str, folder: Path) -> Overshoot:
    """Kill the process each time its helpers' requests are under way, and resume the run, until its limit ends it."""
    biller, under_way = Biller(wire, KILLS), list[int]()
    with WIRES[wire](biller) as http:
        for _ in range(MAX_KILLS):
            words = ("faults.overshoot_table", wire, limit, http.url, str(folder))
            source = prepared(imported=(*IMPORTED, "faults.stage"))
            with forked(*words, cwd=Path(__file__).parents[1], variables=os.environ, source=source) as child:
                count = 0
                while child.poll() is None and not count:
                    count += biller.under_way.acquire(timeout=0.1)
                # Let the others be under way, too, as many as the limit has room for.
                while biller.under_way.acquire(timeout=1):
                    count += 1
                under_way.append(count)
                child.kill()
            if child.returncode == 0:
                break
    run_state = RunState.of_records(read_records(only_run(folder)))
    billed, booked = {
        "max_cost_usd": (biller.usd, run_state.known_cost_usd),
        "max_tokens": (biller.input_tokens + biller.output_tokens, run_state.usage.total_tokens),
    }[limit]
    most = _limit(KILL_LIMITS, wire, limit)
    return Overshoot(billed / most, booked / most, tuple(under_way))


async def _live(wire: str, limit: str, url: str, folder: Path) -> None:
    """What the killed processes do."""
    given = settings_at(url, folder, is_anthropic=wire == "anthropic")
    limits = _limits(given, limit, _limit(KILL_LIMITS, wire, limit), MANY_PARTS)
    given = given.model_copy(update={"model": MODELS[wire].model, "limits": limits, "max_output_tokens": 2_000})
    runs = list((folder / "workspace").glob("[!.]*"))
    if runs:
        await resume(runs[0], given, hooks=hooks(watch_s=60))
    else:
        await start(QUESTION, given, hooks(watch_s=60))


def _limit(limits: Mapping[str, float], wire: str, limit: str) -> float:
    return limits[limit] * (MODELS[wire].times if limit == "max_cost_usd" else 1)


def _limits(given: Settings, limit: str, most: float, parts: int) -> Limits:
    others = {"max_cost_usd": None, "max_tokens": None, "max_steps": 900, "max_agents": 300}
    return given.limits.model_validate({**others, "max_parallel_agents": parts, limit: most})


async def run_to_its_limit(wire: str, server: str, limit: str, folder: Path) -> Overshoot:
    """Let the team work until the limit ends it."""
    biller, most = Biller(wire, server), _limit(LIMITS, wire, limit)
    with WIRES[wire](biller) as http:
        given = settings(folder, http)
        given = given.model_copy(update={"model": MODELS[wire].model, "limits": _limits(given, limit, most, PARTS)})
        result = await start(QUESTION, given, hooks(watch_s=20))
    events = [record.event for record in read_records(result.folder)]
    turns = sum(isinstance(event, TurnTaken) for event in events)
    calls = sum(isinstance(event, ToolStarted) for event in events)
    billed, booked = {
        "max_cost_usd": (biller.usd, result.cost_usd or 0.0),
        "max_tokens": (biller.input_tokens + biller.output_tokens, result.usage.total_tokens),
        "max_steps": (turns, result.steps),
        "max_tool_calls": (calls, calls),
    }[limit]
    return Overshoot(billed / most, booked / most)


def main() -> int:
    """Print the table; the exit code says whether every limit held."""
    row = "{:>16}  {:>14}  {:>16}  {:>8}  {:>8}"
    print(row.format("wire", "limit", "server", "billed", "booked"))  # noqa: T201 - a command
    worst = 0.0
    for wire in MODELS:
        for limit in LIMITS:
            for server in SERVERS:
                with tempfile.TemporaryDirectory() as folder:
                    found = asyncio.run(run_to_its_limit(wire, server, limit, Path(folder)))
                worst = max(worst, found.billed, found.booked)
                shares = f"{found.billed:.2f} x", f"{found.booked:.2f} x"
                print(row.format(wire, limit, server, *shares), flush=True)  # noqa: T201
    for wire in MODELS:
        for limit in KILL_LIMITS:
            with tempfile.TemporaryDirectory() as folder:
                found = kill_again_and_again(wire, limit, Path(folder))
            worst = max(worst, found.billed, found.booked)
            shares = f"{found.billed:.2f} x", f"{found.booked:.2f} x"
            print(row.format(wire, limit, KILLS, *shares), "under way:", *found.under_way, flush=True)  # noqa: T201
    return 1 if worst > 1 else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(_live(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])))
        sys.exit(0)
    sys.exit(main())
