"""Limits that a fleet shares, against a provider that keeps its own account: what is spent, and how fast.

    uv run python bench/fleet_limits.py [--workers 8] [--runs 24] [--database URL] [--json]

The provider is a server on loopback. It bills each request when it arrives, also if its client dies before the answer,
and up to the whole worst case. First all runs work under one limit of money that is too small, while workers are killed
with SIGKILL; then the limit is raised. Then the provider throttles one key.
"""

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import SecretStr

from explorer.fleet.database import FleetDatabase
from explorer.fleet.limits import NANO, LimitName, SharedLimitBook
from explorer.fleet.rates import KeyIds
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.journal.listing import read_records
from explorer.llm.models import ModelSetup
from explorer.run.settings_parts import model_setup
from explorer.schema.errors import StorageError
from explorer.schema.settings import Settings

MODEL = "openai:loopback-1"
PRICE_USD = (5.0, 25.0)
"""Per million tokens, input and output."""
BYTES_PER_TOKEN = 4
LEASE_S = 10
CONCURRENCY = 2
LOOK_S = 0.1
MAX_S = 900.0
HELPERS, LOOKS = 2, 3
Worker: TypeAlias = "subprocess.Popen[bytes]"
DAY = LimitName("fleet", "", "usd", "day")
KEY = "sk-loopback-0123456789"
RATE = 8
"""Requests a second."""
WINDOW_S = 10.0
"""What the rate is measured over: on a busy machine, single requests reach the provider late."""
RETRY_AFTER_S = 8
"""What the provider asks for when it throttles."""


@dataclass
class Bill:
    """What the provider knows of its requests."""

    arrived: list[float] = field(default_factory=list[float])
    usd: float = 0.0
    throttles_after: int = 0
    """The number of requests after which it throttles once; 0: it does not."""
    throttled_at: float | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, body_bytes: int, max_output_tokens: int, chance: random.Random) -> tuple[int, int] | None:
        """Bill a request; return its tokens, or None when it is refused."""
        with self.lock:
            now = time.monotonic()
            if self.throttles_after and len(self.arrived) == self.throttles_after and self.throttled_at is None:
                self.throttled_at = now
                return None
            tokens = body_bytes // BYTES_PER_TOKEN, chance.choice((60, max_output_tokens // 4, max_output_tokens))
            self.arrived.append(now)
            self.usd += (tokens[0] * PRICE_USD[0] + tokens[1] * PRICE_USD[1]) / 1_000_000
            return tokens


@contextmanager
def provider(bill: Bill, delay_s: tuple[float, float] = (0.05, 0.3)) -> Generator[str]:
    """Serve the models; yield the address."""
    handler = type("Handler", (_Handler,), {"bill": bill, "delay_s": delay_s, "chance": random.Random(11)})  # noqa: S311
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base class's types
        """Say nothing of a client that was killed."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers as an orchestrator with two helpers needs it, which look at files, and write a report."""

    protocol_version = "HTTP/1.1"
    bill: Bill
    delay_s: tuple[float, float]
    chance: random.Random

    def do_GET(self) -> None:
        """List the models."""
        self._send(200, "application/json", json.dumps({"data": [{"id": MODEL.partition(":")[2]}]}).encode())

    def do_POST(self) -> None:
        """Bill and answer."""
        raw = self.rfile.read(int(self.headers["content-length"]))
        body: dict[str, Any] = json.loads(raw)
        most = int(body.get("max_completion_tokens") or body.get("max_tokens") or 0)
        tokens = self.bill.take(len(raw), most, self.chance)
        if tokens is None:
            words = json.dumps({"error": {"message": "slow down", "type": "rate_limit", "code": "rate_limit_exceeded"}})
            self._send(429, "application/json", words.encode(), {"retry-after": str(RETRY_AFTER_S)})
            return
        time.sleep(self.chance.uniform(*self.delay_s))  # noqa: TID251 - a provider takes its time
        self._send(200, "text/event-stream", b"".join(_events(body, tokens)))

    def _send(self, status: int, kind: str, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's names
        """Stay silent."""


def _events(body: dict[str, Any], tokens: tuple[int, int]) -> Generator[bytes]:
    calls = _calls(body)
    delta: dict[str, Any] = {"role": "assistant", "content": None if calls else "Nothing more to say."}
    if calls:
        number = sum(message["role"] == "assistant" for message in body["messages"])
        delta["tool_calls"] = [
            {
                "index": index,
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(calls)
        ]
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"},
    ]
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    for choice in choices:
        yield b"data: " + json.dumps({**whole, "choices": [choice]}).encode() + b"\n\n"
    yield b"data: " + json.dumps({**whole, "choices": [], "usage": usage}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def _calls(body: dict[str, Any]) -> Sequence[tuple[str, dict[str, object]]]:
    """Return what the model does next."""
    tools = {tool["function"]["name"] for tool in body.get("tools", ())}
    number = sum(message["role"] == "assistant" for message in body["messages"])
    if "call_agent" not in tools:
        return [("list_files", {"path": ".", "glob": f"{number}*"})] if number < LOOKS else ()
    task = {"agent_type": "searcher", "task_description": "look at the files"}
    turns: list[list[tuple[str, dict[str, object]]]] = [
        [("call_agent", {**task, "output_dir": f"part-{part}"}) for part in range(HELPERS)],
        [("write_file", {"filepath": "report.md", "content": "# Files\n\nThere is nothing to report."})],
        [("finish_exploration", {"summary": "done", "interesting_links": []})],
    ]
    return turns[number] if number < len(turns) else ()


@dataclass
class Fleet:
    """Workers as processes, which are replaced when they die."""

    folder: Path
    database: str
    address: str
    workers: int
    alive: list[Worker] = field(default_factory=list[Worker])
    kills: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311 - which worker dies

    def until(self, is_so: Callable[[], bool], bill: Bill | None = None, kill_every: int = 0) -> None:
        """Let the workers work until something is so; kill one after every few requests of the bill."""
        began, last = time.monotonic(), len(bill.arrived) if bill else 0
        while not is_so():
            if time.monotonic() - began > MAX_S:
                raise TimeoutError(f"after {MAX_S:.0f} s it was not so")
            self.alive = [one for one in self.alive if one.poll() is None]
            self.alive += [self._start() for _ in range(self.workers - len(self.alive))]
            if kill_every and bill and len(bill.arrived) >= last + kill_every:
                victim = self.chance.choice(self.alive)
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                self.kills, last = self.kills + 1, len(bill.arrived)
            time.sleep(LOOK_S)  # noqa: TID251 - other processes work meanwhile

    def key_id(self, salt: str) -> str:
        """Return the id of the key that the workers use."""
        vendor = next(one for name, one in model_setup(Settings()).vendors.items() if name == MODEL.partition(":")[0])
        own = replace(vendor, settings=vendor.settings.model_copy(update={vendor.vendor.needs: SecretStr(KEY)}))
        return KeyIds(salt, ModelSetup(vendors={vendor.vendor.name: own})).id_of(vendor.vendor.name)

    def end(self) -> None:
        """End all workers."""
        for one in self.alive:
            one.terminate()
        for one in self.alive:
            one.wait()

    def _start(self) -> Worker:
        flags = ("worker", "--no-shell", f"--concurrency={CONCURRENCY}", f"--lease={LEASE_S}s", "--model", MODEL)
        variables = {
            "PATH": os.environ["PATH"],  # noqa: TID251 - to find programs
            "HOME": str(self.folder),
            "EXPLORER_FLEET_DATABASE": self.database,
            "OPENAI_BASE_URL": self.address,
            "OPENAI_API_KEY": KEY,
            "EXPLORER_PRICE": f"{PRICE_USD[0]}/{PRICE_USD[1]}",
            "EXPLORER_MAX_COST": "none",
        }
        command = [sys.executable, "-m", "explorer", *flags]
        with (self.folder / "workers.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.folder, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )


@dataclass(frozen=True)
class MoneyFigures:
    """What came of one limit of money over all workers."""

    runs: int
    workers: int
    kills: int
    limit_usd: float
    billed_usd: float
    """By the provider, when no run could go on."""
    raised_to_usd: float
    billed_in_all_usd: float
    overshoot_usd: float
    """The most that the bill was ever above the limit."""
    waiting_at_limit: int
    """Runs that waited then."""
    done: int
    requests: int
    """That the provider got."""
    recorded: int
    """That are on record in the runs' journals."""
    seconds: float


def money(folder: Path, url: str, runs: int, workers: int, *, kill_every: int = 5) -> MoneyFigures:
    """Let runs work under a limit that is too small; then raise it.

    Args:
        folder: Where the runs go.
        url: The fleet's database.
        runs: How many.
        workers: How many at a time; a killed one is replaced.
        kill_every: Requests between two kills; 0: none.
    """
    queue, bill, began = FleetQueue(FleetDatabase(url)), Bill(), time.monotonic()
    book = SharedLimitBook(queue.database)
    submitted = [queue.submit(NewRun("Which files are there?", {"model": MODEL}))[0] for _ in range(runs)]
    with provider(bill) as address:
        fleet = Fleet(folder, url, address, workers)
        small, large = 0.55 * runs, 100.0 * runs
        book.put(DAY, small)
        try:
            fleet.until(lambda: _is_stalled(queue), bill, kill_every)
            billed, waiting = bill.usd, _counts(queue)[QueueState.WAITING]
            over = bill.usd - small
            book.put(DAY, large)
            fleet.until(lambda: not _has_work(queue), bill, kill_every)
        finally:
            fleet.end()
    found = MoneyFigures(
        runs=runs,
        workers=workers,
        kills=fleet.kills,
        limit_usd=small,
        billed_usd=round(billed, 6),
        raised_to_usd=large,
        billed_in_all_usd=round(bill.usd, 6),
        overshoot_usd=max(0.0, over, bill.usd - large, bill.usd - book.uses()[0].spent / NANO),
        waiting_at_limit=waiting,
        done=_counts(queue)[QueueState.DONE],
        requests=len(bill.arrived),
        recorded=sum(_sent(folder / "workspace" / run_id) for run_id in submitted),
        seconds=round(time.monotonic() - began, 1),
    )
    queue.close()
    return found


@dataclass(frozen=True)
class RateFigures:
    """What came of the rate of one key over all workers, and of one answer 429."""

    runs: int
    workers: int
    limit_per_s: int
    requests: int
    most_per_s: float
    """The most requests in any ten seconds, by the second."""
    most_in_one_s: int
    seconds: float
    retry_after_s: int
    """What the provider asked one worker for, once, in a second measurement without a rate."""
    silent_s: float
    """How long after that no worker sent anything, from when those under way had arrived."""
    done: int


def rate(folder: Path, url: str, runs: int, workers: int) -> RateFigures:
    """Let runs ask one provider: with a rate; then without one, while it throttles once.

    Args:
        folder: Where the runs go.
        url: The fleet's database.
        runs: How many, twice.
        workers: How many.
    """
    queue = FleetQueue(FleetDatabase(url))
    book = SharedLimitBook(queue.database)
    limited, throttling, submitted = Bill(), Bill(throttles_after=2 * runs), set[str]()
    for bill, requests in ((limited, RATE), (throttling, None)):
        submitted |= {queue.submit(NewRun("Which files are there?", {"model": MODEL}))[0] for _ in range(runs)}
        with provider(bill, (0.0, 0.05)) as address:
            fleet = Fleet(folder, url, address, workers)
            book.put_rate(fleet.key_id(queue.database.salt), requests, 1.0)
            try:
                fleet.until(lambda: not _has_work(queue))
            finally:
                fleet.end()
    found = RateFigures(
        runs=2 * runs,
        workers=workers,
        limit_per_s=RATE,
        requests=len(limited.arrived),
        most_per_s=_most_in(limited.arrived, WINDOW_S) / WINDOW_S,
        most_in_one_s=_most_in(limited.arrived, 1.0),
        seconds=round(limited.arrived[-1] - limited.arrived[0], 1),
        retry_after_s=RETRY_AFTER_S,
        silent_s=round(_silence(throttling), 2),
        done=sum(one.state is QueueState.DONE and one.run_id in submitted for one in queue.runs()),
    )
    queue.close()
    return found


def _most_in(times: Sequence[float], window_s: float) -> int:
    return max(sum(at <= other < at + window_s for other in times) for at in times)


def _silence(bill: Bill) -> float:
    """Return the longest time without a request in what the provider asked for."""
    if bill.throttled_at is None:
        return 0.0
    end = bill.throttled_at + RETRY_AFTER_S
    times = [bill.throttled_at, *(at for at in bill.arrived if bill.throttled_at < at < end), end]
    return max(after - before for before, after in itertools.pairwise(times))


def _sent(folder: Path) -> int:
    return sum(record.event.type == "request_sent" for record in read_records(folder)) if folder.is_dir() else 0


def _counts(queue: FleetQueue) -> Counter[QueueState]:
    return Counter(one.state for one in queue.runs())


def _is_stalled(queue: FleetQueue) -> bool:
    """Return whether the limit is reached, and no run is at work."""
    try:
        counts, uses = _counts(queue), SharedLimitBook(queue.database).uses()
    except StorageError:
        return False
    is_held = any(one.is_reached and one.refused for one in uses) and all(one.held == 0 for one in uses)
    return not counts[QueueState.RUNNING] and (is_held or not counts[QueueState.WAITING])


def _has_work(queue: FleetQueue) -> bool:
    try:
        return queue.has_work
    except StorageError:
        return True


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--kill-every", type=int, default=5, help="requests; 0: no kills")
    parser.add_argument("--database", default="", help="default: a file")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.database or f"sqlite:///{folder}/queue.sqlite"
        spent = money(Path(folder), url, given.runs, given.workers, kill_every=given.kill_every)
        sent = rate(Path(folder), url, given.runs, given.workers)
    figures = {"money": asdict(spent), "rate": asdict(sent)}
    if given.json:
        print(json.dumps(figures))
    else:
        rows = [
            f"{what} {name.replace('_', ' ')}: {value}" for what, of in figures.items() for name, value in of.items()
        ]
        print("\n".join(rows))
    return 0 if spent.overshoot_usd == 0 and sent.most_per_s <= sent.limit_per_s else 1


if __name__ == "__main__":
    sys.exit(main())
