"""Cut runs off at every point of no return and print what that cost: the command of the crash enumeration.

`python tests/crash/enumerate.py` takes a sample; `--points` takes every point, with one ending after the other; `--all`
takes every point with every ending.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from campaign import ENDINGS, Bench, Case, Figures, chains, evenly, every_crash, every_point, prepare, run_cases
from lives import Place, warm_up
from scenarios import SCENARIOS, write_roles
from stand_ins import JOURNALS
from truncation import all_offsets, cut_runs, misread_offsets, offsets, some_offsets

SAMPLE = 24
ALL_CHAINS = 60
POINTS_CHAINS = 12
POINTS_OFFSETS = 100
SAMPLES_A_CHAIN = 4
"""In a sample, one case in so many more has crashes in several lives."""
SHOWN_BREACHES = 10
COLUMNS = (
    "scenario",
    "points",
    "cases",
    "lives",
    "cut off",
    "calls repeated",
    "most a crash",
    "effects repeated",
    "reports equal",
    "seconds",
    "CPU s",
)


@dataclass(frozen=True)
class Options:
    """What the command line asked for."""

    all: bool
    points: bool
    sample: int
    scenarios: tuple[str, ...]
    endings: tuple[str, ...]
    stand_in: str
    is_json: bool

    @classmethod
    def read(cls) -> "Options":
        """From the arguments."""
        parser = argparse.ArgumentParser(description="Cut runs off at every point of no return.")
        parser.add_argument("--all", action="store_true", help="every point and every ending, not a sample")
        parser.add_argument("--points", action="store_true", help="every point, with one ending after the other")
        parser.add_argument("--sample", type=int, default=SAMPLE, help="cases of each scenario")
        parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="only this; may be repeated")
        parser.add_argument("--ending", action="append", choices=ENDINGS, help="only this; may be repeated")
        parser.add_argument("--stand-in", choices=JOURNALS, default="", help="a journal that breaks its promises")
        parser.add_argument("--json", action="store_true", help="the figures as JSON, with all breaches")
        found = parser.parse_args()
        scenarios, endings = tuple(found.scenario or SCENARIOS), tuple(found.ending or ENDINGS)
        return cls(found.all, found.points, found.sample, scenarios, endings, found.stand_in, found.json)


def main() -> int:
    """Do what is asked for and print the figures; 1 when anything does not hold."""
    options = Options.read()
    figures: list[Figures] = []
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as name:
        for each in _all_figures(Path(name), options):
            if not options.is_json:
                _print_row(COLUMNS if not figures else ())
                _print_row(_cells(each))
            figures.append(each)
    if options.is_json:
        sys.stdout.write(f"{json.dumps([asdict(each) for each in figures])}\n")
    breaches = [f"{each.scenario}: {breach}" for each in figures for breach in each.breaches]
    if not options.is_json:
        for breach in breaches[:SHOWN_BREACHES]:
            sys.stderr.write(f"{breach}\n")
    return int(bool(breaches))


def _all_figures(folder: Path, options: Options) -> Iterator[Figures]:
    roles = write_roles(folder)
    warm_up(Place(folder / "warm", roles), SCENARIOS["helpers"]())
    for scenario in options.scenarios:
        bench = prepare(folder, scenario, options.stand_in)
        yield run_cases(bench, _cases(bench, options))
        if scenario == "plain" and not options.stand_in:
            some = POINTS_OFFSETS if options.points else options.sample
            yield cut_runs(bench, offsets(bench) if options.all else evenly(offsets(bench), some))
            is_sample = not (options.all or options.points)
            wrong = misread_offsets(bench, some_offsets(bench, some) if is_sample else all_offsets(bench))
            assert not wrong, f"cut at these bytes, the journal is not opened with what is whole in it: {wrong}"


def _cases(bench: Bench, options: Options) -> list[Case]:
    if options.all:
        return [*every_crash(bench, options.endings), *chains(bench, ALL_CHAINS)]
    if options.points:
        return [*every_point(bench, options.endings), *chains(bench, POINTS_CHAINS)]
    return [
        *evenly(every_crash(bench, options.endings), options.sample),
        *chains(bench, options.sample // SAMPLES_A_CHAIN),
    ]


def _fast_folder() -> str | None:
    """A folder in memory, where there is one: what a kill leaves behind is the same, and a sync costs nothing."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
    return str(memory) if memory.is_dir() else None


def _cells(figures: Figures) -> Sequence[str]:
    return (
        figures.scenario,
        str(figures.points),
        str(figures.cases),
        str(figures.lives),
        str(figures.cut),
        str(figures.repeated_all),
        str(figures.repeated_most),
        str(figures.effects_repeated),
        f"{figures.reports_equal}/{figures.cases}",
        f"{figures.seconds:.1f}",
        f"{figures.cpu_seconds:.1f}",
    )


def _print_row(cells: Sequence[str]) -> None:
    if cells:
        rest = [f"{cell:>{len(name) + 3}}" for cell, name in zip(cells[1:], COLUMNS[1:], strict=True)]
        sys.stdout.write(f"{cells[0]:<12}{''.join(rest)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
