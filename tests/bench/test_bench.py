"""The bench itself: that it measures what it says, on its smallest size."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


def module(name: str) -> Any:  # noqa: ANN401 - a script's module, which no package holds
    """A module of the bench, loaded from its file."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


simulator = module("cache_simulator")
recording = module("recording")

MARK = {"type": "ephemeral"}


def block(text: str, *, marked: bool = False) -> dict[str, Any]:
    return {"type": "text", "text": text, **({"cache_control": MARK} if marked else {})}


def body(*blocks: dict[str, Any], system: str = "s" * 8_000) -> dict[str, Any]:
    head = [block(system, marked=True)] if system else []
    return {"model": "m", "system": head, "messages": [{"role": "user", "content": list(blocks)}]}


LONG = "x" * 8_000


def test_what_was_marked_is_served_again() -> None:
    """The second request reads all up to the mark of the first, and writes the rest up to its own mark."""
    cache = simulator.Simulator()
    first = cache.take(body(block(LONG, marked=True)), 0)
    second = cache.take(body(block(LONG), block(LONG, marked=True)), 1)
    assert (first.read, second.read) == (0, first.written)
    assert second.written > 1_900
    assert 0.3 < cache.share < 0.5


def test_what_was_not_marked_is_not_served() -> None:
    """Entries stand only at marks: without one in the messages, only the head is read."""
    cache = simulator.Simulator()
    cache.take(body(block(LONG)), 0)
    served = cache.take(body(block(LONG), block(LONG)), 1)
    assert 1_900 < served.read < 2_100
    assert served.fresh > 3_900


@pytest.mark.parametrize(("added", "is_found"), [(18, True), (19, True), (20, False), (60, False)])
def test_an_entry_is_looked_for_twenty_blocks_back(added: int, is_found: bool) -> None:  # noqa: FBT001
    """An entry more than 20 blocks before a mark is not found; the request then pays for all but its head."""
    cache = simulator.Simulator()
    cache.take(body(block(LONG, marked=True), system=""), 0)
    more = [block(f"{number}") for number in range(added)]
    served = cache.take(body(block(LONG), *more[:-1], {**more[-1], "cache_control": MARK}, system=""), 1)
    assert (served.read > 0) is is_found


def test_entries_die_and_short_prefixes_are_not_kept() -> None:
    """After five minutes without use an entry is gone; under 1,024 tokens there never was one."""
    cache = simulator.Simulator()
    for at, is_read in ((0, False), (299, True), (590, True), (900, False)):
        assert (cache.take(body(block(LONG, marked=True)), at).read > 0) is is_read
    small = simulator.Simulator()
    for at in (0, 1):
        assert small.take(body(block("short", marked=True), system="short"), at).read == 0


def test_five_marks_are_refused() -> None:
    """The provider takes four; a fifth would fail every request."""
    with pytest.raises(simulator.TooManyMarksError):
        simulator.Simulator().take(body(*[block("x", marked=True)] * 4), 0)


def test_prefix_share_sees_a_change_in_the_past() -> None:
    """An unchanged past counts fully, marks left out; a changed first word leaves only what stands before it."""

    def share(*texts: str) -> float:
        bodies = [json.dumps({"messages": [text], "max_tokens": 9}).encode() for text in texts]
        recorded = [recording.Recorded("openai", "a", body, 0.0) for body in bodies]
        found: float = recording.shares(recorded)["prefix_share"]
        return found

    output = "a" * 1_000
    assert share(output, output, output) == 1.0
    assert share(output, "b" + output) < 0.1


def run_bench(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(BENCH / "run.py"), *words], capture_output=True, text=True, check=False, cwd=cwd
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_the_bench_runs_and_its_checks_hold(wire: str, tmp_path: Path) -> None:
    """A team over a real server: every contestant takes the same turns, and what the engine resends is a prefix."""
    done = run_bench("fan-out-3", "research-small", "--wire", wire, "--small", "--json", "rows.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    by_scenario = {name: [row for row in rows if row["scenario"] == name] for name in ("fan-out-3", "research-small")}
    assert [{row["turns"] for row in some} for some in by_scenario.values()] == [{33}, {29}]
    assert all(row["requests"] == row["turns"] for row in rows)
    assert all(row["prefix_share"] >= 0.95 for row in rows if row["contestant"] == "engine")


def test_gross_regressions_are_told() -> None:
    """The checks fail on a turn three times as dear as the lean loop's, and on a past that is sent anew."""
    checks = module("checks")
    lean = {"scenario": "fan-out-3", "wire": "openai", "contestant": "lean-sdk", "cpu_s": 1.0}
    fine = {**lean, "contestant": "engine", "cpu_s": 1.5, "prefix_share": 1.0, "helper_head_bytes": 2_000}
    assert checks.problems([lean, fine]) == []
    assert len(checks.problems([lean, {**fine, "cpu_s": 3.5}])) == 1
    assert len(checks.problems([lean, {**fine, "prefix_share": 0.5, "helper_head_bytes": 90_000}])) == 2


@pytest.mark.slow
def test_context_costs_are_those_of_the_engine() -> None:
    """A helper's usual reading is left alone, and costs what sending all does; a very long one costs far less."""
    rows = json.loads(
        subprocess.run(
            [sys.executable, str(BENCH / "context_costs.py"), "--json"], capture_output=True, text=True, check=True
        ).stdout
    )
    found = {(row["scenario"], row["model"]): row for row in rows}
    usual, long = (found[f"read-{size}x20000", "anthropic:claude-opus-4-5"] for size in (25, 100))
    assert (usual["now"], usual["now_clearings"]) == (usual["all"], 0)
    assert long["now"] < 0.7 * long["all"]
    assert long["before"] < long["now"]
    assert usual["before_largest"] < 60_000 < usual["now_largest"]
