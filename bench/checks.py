"""What the bench must show: ratios within one run, wide enough that a busy machine does not break them.

The targets are tighter (docs/decisions.md); these bounds catch what went wrong grossly.
"""

from collections.abc import Iterator, Sequence
from typing import Any

JsonObject = dict[str, Any]

MAX_TO_LEAN = 3.0
"""CPU of a turn in a fan-out, beside the lean SDK loop; seen are 1.7 to 2.1."""
MAX_JOURNAL = 1.8
MAX_GROWTH = 4.0
"""CPU of a late turn of a long run, beside an early one."""
MIN_PREFIX_SHARE = 0.95
MIN_CACHE_SHARE = 0.8
"""Of a long run's input that Anthropic's cache would serve."""
MAX_SENT = 1.05
"""Bytes of a long run, beside a loop that sends everything again: what fits and costs little is sent again, too."""
MAX_HEAD_BYTES = 16_000
MAX_HELP = 25.0
"""CPU of `--help`, beside a Python that does nothing."""


def problems(rows: Sequence[JsonObject]) -> list[str]:
    """What is out of bounds, in words."""
    cells = {(row["scenario"], row.get("wire", ""), row["contestant"]): row for row in rows}
    return [problem for key, row in cells.items() for problem in _of(key, row, cells)]


def _of(key: tuple[str, str, str], row: JsonObject, cells: dict[tuple[str, str, str], JsonObject]) -> Iterator[str]:
    scenario, wire, contestant = key
    if contestant == "help":
        ratio = row["cpu_s"] / cells["start", "", "python"]["cpu_s"]
        yield from _above("CPU of --help, beside python", ratio, MAX_HELP)
    if contestant != "engine" or not wire:
        return
    where = f"{scenario} over {wire}"
    lean, off = (cells.get((scenario, wire, other)) for other in ("lean-sdk", "engine-no-journal"))
    if scenario.startswith("long-run"):
        yield from _of_long_run(where, row, lean)
        return
    if lean and scenario.startswith("fan-out"):
        yield from _above(f"{where}: CPU beside the lean loop", row["cpu_s"] / lean["cpu_s"], MAX_TO_LEAN)
    if off and scenario.startswith("fan-out"):
        yield from _above(f"{where}: CPU beside no journal", row["cpu_s"] / off["cpu_s"], MAX_JOURNAL)
    if row["prefix_share"] < MIN_PREFIX_SHARE:
        yield f"{where}: only {row['prefix_share']:.1%} of what was resent was a byte prefix"
    yield from _above(f"{where}: bytes of a helper's head", row["helper_head_bytes"], MAX_HEAD_BYTES)


def _of_long_run(where: str, row: JsonObject, lean: JsonObject | None) -> Iterator[str]:
    if lean:
        yield from _above(f"{where}: bytes beside sending everything", row["bytes"] / lean["bytes"], MAX_SENT)
    if row["cache_share"] is not None and row["cache_share"] < MIN_CACHE_SHARE:
        yield f"{where}: a cache would serve only {row['cache_share']:.1%}"
    if "growth" in row:
        yield from _above(f"{where}: CPU of a late turn beside an early one", row["growth"], MAX_GROWTH)


def _above(what: str, value: float, most: float) -> Iterator[str]:
    if value > most:
        yield f"{what}: {value:.2f}; at most {most:g}"
