"""Ends runs at every point of no return, takes them up again, and counts what that cost."""

import json
import multiprocessing
import random
import resource
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TypeVar

from checks import Before, Undisturbed, after_life, at_the_end, files_of, of_complete, unrecorded, with_paid
from lives import Place, live, next_step
from scenarios import SCENARIOS

from explorer.schema.events import ToolFinished

ENDINGS = ("KILL", "POWER", "INT", "TERM")
"""POWER: killed, and what was not synced is lost."""
WORKERS = 2
SPARE_LIVES = 4
"""Beyond the crashed ones: asking again, going on, the follow-up."""
SEED = 20260810
T = TypeVar("T")


@dataclass(frozen=True)
class Crash:
    """Where and how one life ends."""

    stage: int
    point: str
    n: int
    ending: str

    @property
    def text(self) -> str:
        """As `EXPLORER_CRASH` has it."""
        return f"{self.point}:{self.n}:{'KILL' if self.ending == 'POWER' else self.ending}"


@dataclass(frozen=True)
class Case:
    """A run whose first lives end in crashes."""

    scenario: str
    crashes: tuple[Crash, ...]
    stand_in: str = ""
    """Another journal than the real one."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    case: Case
    lives: int
    cut: int
    """Lives that did not end by themselves."""
    repeated: tuple[int, ...]
    """By life: requests that were made again later."""
    effects_repeated: int
    is_report_equal: bool
    breaches: tuple[str, ...]


@dataclass
class _Tally:
    lives: int = 0
    cut: int = 0
    repeated: list[int] = field(default_factory=list[int])
    breaches: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Bench:
    """A scenario ready to be disturbed."""

    folder: Path
    scenario: str
    stand_in: str
    whole: Undisturbed

    def stage(self, number: int) -> Path:
        """A copy of the run, and of its traces, as it stood when a stage began."""
        return self.folder / f"{self.scenario}{self.stand_in}-stage{number}"


def prepare(folder: Path, scenario: str, stand_in: str = "") -> Bench:
    """Let a scenario run undisturbed, and keep it as it stands at each stage."""
    place = Place(folder / f"{scenario}{stand_in}-whole", folder / "roles")
    place.home.mkdir()
    made = SCENARIOS[scenario]()
    stage, reports = 0, list[str]()
    while (step := next_step(place, made)) is not None:
        shutil.copytree(place.home, folder / f"{scenario}{stand_in}-stage{stage}")
        code = live(place, made, step, "", stand_in)
        if code != 0:
            raise RuntimeError(f"{scenario} ends with {code} by itself: {place.notes('stderr')}")
        stage += 1
        reports.append((place.run / "report.md").read_text())
    files = files_of(place.run)
    calls = frozenset(r.event.call for r in place.records() if isinstance(r.event, ToolFinished))
    points: tuple[dict[str, int], ...] = tuple(json.loads(line) for line in place.notes("points"))
    whole = Undisturbed(tuple(reports), files, Counter(place.notes("requests")), calls, points)
    return Bench(folder, scenario, stand_in, whole)


def run_case(bench: Bench, number: int, case: Case) -> Outcome:
    """Live a run through its crashes to its end, and look."""
    place = Place(bench.folder / f"{case.scenario}{case.stand_in}-{number}", bench.folder / "roles")
    shutil.copytree(bench.stage(case.crashes[0].stage), place.home)
    tally = _Tally()
    try:
        _live_through(place, bench.whole, case, tally)
        tally.breaches += at_the_end(place, SCENARIOS[case.scenario](), bench.whole)
        report = place.run / "report.md"
        events = [record.event for record in place.records()]
        is_equal = report.is_file() and report.read_text() == with_paid(bench.whole.reports[-1], events)
        effects = sum(n - 1 for n in Counter(place.notes("posted")).values())
    finally:
        shutil.rmtree(place.home)
    return Outcome(
        case, tally.lives, tally.cut, tuple(tally.repeated), effects, is_equal, tuple(dict.fromkeys(tally.breaches))
    )


def _live_through(place: Place, whole: Undisturbed, case: Case, tally: _Tally) -> None:
    scenario = SCENARIOS[case.scenario]()
    coming = list(case.crashes)
    for _ in range(len(case.crashes) + SPARE_LIVES):
        step = next_step(place, scenario)
        if step is None:
            return
        crash = coming.pop(0) if coming else None
        before = Before.of(place)
        code = live(place, scenario, step, crash.text if crash else "", case.stand_in)
        tally.lives += 1
        tally.cut += code != 0
        if crash is not None and crash.ending == "POWER" and code != 0:
            place.lose_what_was_not_synced()
        tally.breaches += after_life(place, before, code, crash.ending if crash else "")
        tally.breaches += of_complete(place, scenario, whole)
        tally.repeated.append(sum(unrecorded(place, before).values()))
    tally.breaches.append("ending: the run never ends")


def every_crash(bench: Bench, endings: Sequence[str] = ENDINGS) -> list[Case]:
    """One case for each point, each time it is reached, and each way to end."""
    return [_case(bench, place, ending) for ending in endings for place in _places(bench)]


def every_point(bench: Bench, endings: Sequence[str] = ENDINGS) -> list[Case]:
    """One case for each point and each time it is reached, which end one way after the other."""
    return [_case(bench, place, ending) for place, ending in zip(_places(bench), cycle(endings), strict=False)]


def _places(bench: Bench) -> list[tuple[int, str, int]]:
    """Stage, point, and which time it is reached."""
    return [
        (stage, point, n)
        for stage, counts in enumerate(bench.whole.points)
        for point, count in counts.items()
        for n in range(1, count + 1)
    ]


def _case(bench: Bench, place: tuple[int, str, int], ending: str) -> Case:
    return Case(bench.scenario, (Crash(*place, ending),), bench.stand_in)


def chains(bench: Bench, number: int, lives: int = 3) -> list[Case]:
    """Cases whose first lives all end in crashes, anywhere and in any way."""
    dice = random.Random(f"{SEED} {bench.scenario}")  # noqa: S311 - the same cases every time
    made: list[Case] = []
    for _ in range(number):
        stage = dice.randrange(len(bench.whole.points))
        share, crashes = 1.0, list[Crash]()
        for _ in range(dice.randint(2, lives)):
            point, count = dice.choice(sorted(bench.whole.points[stage].items()))
            n = dice.randint(1, max(1, int(count * share)))
            # What is left of the run grows shorter with every life.
            share *= 1 - n / (count + 1)
            crashes.append(Crash(stage, point, n, dice.choice(ENDINGS)))
        made.append(Case(bench.scenario, tuple(crashes), bench.stand_in))
    return made


def evenly(cases: Sequence[T], number: int) -> list[T]:
    """So many of them, spread over all."""
    return list(cases) if len(cases) <= number else [cases[i * len(cases) // number] for i in range(number)]


@dataclass(frozen=True)
class Figures:
    """What the cases of one scenario came to."""

    scenario: str
    points: int
    """How often the points were reached in an undisturbed run, all together."""
    cases: int
    lives: int
    cut: int
    repeated_most: int
    """Model calls that one crash made again, at most."""
    repeated_all: int
    effects_repeated: int
    reports_equal: int
    seconds: float
    cpu_seconds: float
    breaches: tuple[str, ...]


def cpu_seconds() -> float:
    """Processor time of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_cases(bench: Bench, cases: Iterable[Case]) -> Figures:
    """Run cases beside each other and add up."""
    started, cpu = time.monotonic(), cpu_seconds()
    chosen = list(cases)
    # Forked before any thread or event loop exists: every life starts with all imports done.
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("fork")) as pool:
        outcomes = list(pool.map(run_case, [bench] * len(chosen), range(len(chosen)), chosen, chunksize=4))
    crashes = [repeated for outcome in outcomes for repeated in outcome.repeated]
    return Figures(
        scenario=bench.scenario,
        points=sum(sum(counts.values()) for counts in bench.whole.points),
        cases=len(outcomes),
        lives=sum(outcome.lives for outcome in outcomes),
        cut=sum(outcome.cut for outcome in outcomes),
        repeated_most=max(crashes, default=0),
        repeated_all=sum(crashes),
        effects_repeated=sum(outcome.effects_repeated for outcome in outcomes),
        reports_equal=sum(outcome.is_report_equal for outcome in outcomes),
        seconds=round(time.monotonic() - started, 1),
        cpu_seconds=round(cpu_seconds() - cpu, 1),
        breaches=tuple(_told(outcome, breach) for outcome in outcomes for breach in outcome.breaches),
    )


def _told(outcome: Outcome, breach: str) -> str:
    crashes = ", then ".join(f"{crash.text} ({crash.ending}, stage {crash.stage})" for crash in outcome.case.crashes)
    return f"{breach} [{crashes}]"
