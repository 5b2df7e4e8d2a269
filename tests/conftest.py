"""What holds for every test: no keys in the environment, no network but loopback, golden files on request."""

import gc
import os
import re
import signal
import socket
from collections.abc import Generator, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings

from explorer.llm.sdk_client import Sdk
from explorer.run.collector import COLLECTOR
from thoroughness import EVERYDAY

SLOW_TEST_S = 400
"""After so many seconds a slow test has hung, on any machine."""
TESTS = Path(__file__).resolve().parent
SHARED_DATA = TESTS.parents[1] / "shared" / "data"
LONGEST_FIRST = (
    "fleet/test_bad_input.py",
    "fleet/test_two_machines.py",
    "fleet/test_workers.py",
    "faults/test_stops.py",
    "attacks/test_attacks.py",
    "attacks/test_hostile_calls.py",
    "faults/test_floods.py",
    "test_forum.py",
    "faults/test_overshoot.py",
    "reports/verify/test_real_texts.py",
    "server/browser/test_runs_in_a_browser.py",
    "cli/test_mcp_serve.py",
    "llm/test_preserved_thinking.py",
    "run/test_real_day.py",
    "sandbox/test_analysis.py",
    "bench/test_bench.py",
)
"""The files of slow tests that take a minute or more: begun last, they would leave processors idle at the end."""
RE_ALL_SLOW = re.compile(r"^pytestmark = \[?pytest\.mark\.slow\b", re.MULTILINE)


if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # Under nohup: what is ignored here is ignored by the processes of tests, too, and those send it.
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)

# Before the plugin loads the profile that the command line names.
settings.load_profile(EVERYDAY)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Make no tests of what is slow where slow tests are left out: a third of the tests, in each process.

    A test that is asked for by its name is made, so that it is deselected and not unknown.
    """
    config = collector.config
    is_left_out = config.option.markexpr == "not slow" and not any("::" in word for word in config.args)
    is_slow = is_left_out and any(mark.name == "slow" for mark in getattr(obj, "pytestmark", ()))
    return [] if is_slow else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Start one process more than there are processors: a quarter of the tests' time is waiting for a clock."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file whose tests are all slow where slow tests are left out, unless it is asked for."""
    is_looked_at = config.option.markexpr != "not slow" or collection_path.suffix != ".py"
    is_asked_for = any(word.split("::")[0].endswith(collection_path.name) for word in config.args)
    if is_looked_at or is_asked_for:
        return None
    return True if RE_ALL_SLOW.search(collection_path.read_text(encoding="utf-8")) else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each of several processes begin with another part of the tests.

    Each imports all of them; what one has compiled is on disk for the others. So in a fresh clone they share that work.
    """
    report = yield
    worker: dict[str, Any] | None = getattr(collector.config, "workerinput", None)
    if worker and collector.path == TESTS and report.passed:
        sizes = [sum(1 for _ in part.path.rglob("test_*.py")) or 1 for part in report.result]
        share = sum(sizes) * int(worker["workerid"].removeprefix("gw")) / worker["workercount"]
        first = next(number for number, size in enumerate(accumulate(sizes)) if size > share)
        report.result = [*report.result[first:], *report.result[:first]]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Put the tests into one order for all processes, and give slow ones more time.

    On a machine that has much else to do, a process takes ten times as long.
    """
    if hasattr(config, "workerinput"):
        first = {TESTS / name: number for number, name in enumerate(LONGEST_FIRST)}
        items.sort(key=lambda item: (first.get(item.path, len(first)), item.path))
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_TEST_S))
    # Hypothesis parses all modules for their constants, and keeps these: in a fresh clone one process does it for all.
    kept = config.rootpath / ".hypothesis"
    kept.mkdir(exist_ok=True)
    lock = FileLock(kept / "constants.lock")
    with lock:
        is_first = not (kept / "constants").exists()
        if is_first:
            yield
    if not is_first:
        yield


def pytest_configure(config: pytest.Config) -> None:
    """Prepare a process that runs tests, which the one that leads several of them does not."""
    is_worker = hasattr(config, "workerinput")
    if config.option.markexpr != "not slow" and hasattr(config.option, "loadscopereorder"):
        # Files in the order of the tests, not by how many tests they have.
        config.option.loadscopereorder = False
    if is_worker:
        # While modules are imported and tests are collected, next to nothing is garbage.
        gc.disable()
    if is_worker or config.option.dist == "no":
        # As a run imports them, before a test asks for one of their types: those of all endpoints cost seconds of CPU.
        for package, client in (("anthropic", "AsyncAnthropic"), ("openai", "AsyncOpenAI")):
            Sdk.imported(package, client)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what the modules and the tests are made of out of garbage collection: a tenth of the tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR)
    gc.enable()


@pytest.fixture(scope="session")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the user's own for what explorer remembers."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch, own_state: Path) -> None:
    """Keep the developer's keys and settings out of every test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(own_state))
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL")) or name.startswith("EXPLORER_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _loopback_only() -> Iterator[None]:
    """Refuse every connection that leaves this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:  # noqa: ANN401 - socket's own signature
        host = address[0] if isinstance(address, tuple) else "localhost"  # pyright: ignore[reportUnknownVariableType]
        if str(host) not in {"127.0.0.1", "::1", "localhost"}:  # pyright: ignore[reportUnknownArgumentType]
            raise PermissionError(f"a test may not connect to {host}")
        connect(self, address)  # pyright: ignore[reportUnknownArgumentType]

    socket.socket.connect = guarded  # type: ignore[method-assign]
    try:
        yield
    finally:
        socket.socket.connect = connect  # type: ignore[method-assign]


@pytest.fixture
def shared_data() -> Path:
    """The folder of recorded real data; the test is skipped where there is none."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no recorded data at {SHARED_DATA}")
    return SHARED_DATA
