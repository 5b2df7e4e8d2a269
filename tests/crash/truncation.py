"""Journals cut off at a byte, under a finished run: its files are ahead of what its journal knows."""

import random
import shutil
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from campaign import SEED, WORKERS, Bench, Figures, cpu_seconds
from checks import with_paid
from lives import NOON, RUN_ID, Place, live, next_step
from scenarios import SCENARIOS

from explorer.journal.journal import Journal
from explorer.workspace.access import journal_path

TRACES = ("requests", "acknowledged", "synced", "points", "posted")


def offsets(bench: Bench) -> list[int]:
    """Bytes worth cutting at: before, within and just short of the end of each record."""
    found: list[int] = []
    end = 0
    for line in journal_path(_finished(bench).run).read_bytes().splitlines(keepends=True):
        start, end = end, end + len(line)
        found += [start, start + 1, start + len(line) // 2, end - 1]
    return found


def cut_runs(bench: Bench, at: Iterable[int]) -> Figures:
    """Cut copies of a finished run's journal, go on, and look at the reports."""
    started, cpu = time.monotonic(), cpu_seconds()
    chosen = list(at)
    with ProcessPoolExecutor(WORKERS, get_context("fork")) as pool:
        breaches = list(pool.map(_cut_run, [bench] * len(chosen), chosen, chunksize=4))
    return Figures(
        scenario="truncation",
        points=journal_path(_finished(bench).run).stat().st_size,
        cases=len(chosen),
        lives=len(chosen),
        cut=len(chosen),
        repeated_most=0,
        repeated_all=0,
        effects_repeated=0,
        reports_equal=sum(not any(each) for each in breaches),
        seconds=round(time.monotonic() - started, 1),
        cpu_seconds=round(cpu_seconds() - cpu, 1),
        breaches=tuple(breach for each in breaches for breach in each),
    )


def _cut_run(bench: Bench, offset: int) -> list[str]:
    place = Place(bench.folder / f"{bench.scenario}-cut{offset}", bench.folder / "roles")
    shutil.copytree(_finished(bench).home, place.home)
    for name in TRACES:
        (place.home / name).unlink(missing_ok=True)
    try:
        with journal_path(place.run).open("rb+") as file:
            file.truncate(offset)
        scenario = SCENARIOS[bench.scenario]()
        code = 0
        while code == 0 and (step := next_step(place, scenario)) is not None:
            code = live(place, scenario, step, "", "")
        output = (place.home / "stderr").read_text()
        report = place.run / "report.md"
        events = [record.event for record in place.records()]
        is_equal = report.is_file() and report.read_text() == with_paid(bench.whole.reports[-1], events)
        breaches = [f"ending: the life ended with {code}"] * (code != 0) + [f"ending: the life said {output!r}"] * bool(
            output
        )
        return [f"{each} [cut at byte {offset}]" for each in breaches + ["report: changed"] * (not is_equal)]
    finally:
        shutil.rmtree(place.home)


def misread_offsets(bench: Bench, at: Iterable[int]) -> list[int]:
    """Those bytes at which a cut journal opens with anything but the records that are whole, or leaves a torn tail."""
    content = journal_path(_finished(bench).run).read_bytes()
    records = _finished(bench).records()
    folder = bench.folder / "opened"
    folder.mkdir()
    wrong: list[int] = []
    for offset in at:
        (folder / "journal.jsonl").write_bytes(content[:offset])
        whole = content[:offset].count(b"\n")
        is_torn = offset > 0 and content[offset - 1] != ord("\n")
        if not _opens_with(folder, records[:whole], is_torn=is_torn):
            wrong.append(offset)
    shutil.rmtree(folder)
    return wrong


def _opens_with(folder: Path, records: tuple[object, ...], *, is_torn: bool) -> bool:
    opened = Journal.open(folder, lambda: NOON)
    opened.close()
    return opened.records[: len(records)] == records and len(opened.records) == len(records) + is_torn


def some_offsets(bench: Bench, number: int) -> list[int]:
    """So many bytes anywhere in the journal."""
    size = journal_path(_finished(bench).run).stat().st_size
    dice = random.Random(SEED)  # noqa: S311 - the same bytes every time
    return sorted(dice.sample(range(size + 1), min(number, size + 1)))


def all_offsets(bench: Bench) -> range:
    """Every byte of the journal, and its end."""
    return range(journal_path(_finished(bench).run).stat().st_size + 1)


def _finished(bench: Bench) -> Place:
    home = bench.folder / f"{bench.scenario}-whole"
    assert (home / "workspace" / RUN_ID).is_dir()
    return Place(home, bench.folder / "roles")
