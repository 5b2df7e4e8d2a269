"""What a model's opinion of citations is worth, next to the rules: on the sets of sentences of `citations.py`.

    uv run python bench/judge.py --judge MODEL [--set SET] [--first N] [--answers FILE.jsonl] [--totals] [--json]

The model is asked as `explorer verify --judge MODEL` asks, with the settings of this folder and environment. A sentence
that the model says is not carried counts as rejected; one of which it says neither this nor that it is carried is
undecided, and not rejected. The cases are asked in an order that is random and always the same, so that the first ones
are a sample. Answers are kept in a file as soon as they are there, by a digest of what was asked and without the words:
a second call asks only what is new. Of `blind` the totals alone are printed. Intervals: Wilson, 95 %.
"""

import argparse
import asyncio
import hashlib
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from citations import DATA, OPEN_SETS, SETS, Answer, Text, answers, lines, recorded
from pydantic import BaseModel, ConfigDict

from explorer.cli.commands.verify import open_judge
from explorer.cli.settings.configuration import settings_of_process
from explorer.evaluation.scoring import share_of
from explorer.reports.verify.claims import SYSTEM, Opinion, TextOf, Verdict, judge, question_about
from explorer.schema.errors import ExplorerError
from explorer.schema.messages import JsonObject, LLMClient
from explorer.schema.settings import Settings

ORDER = 20261124
"""Seed of the order in which the cases are asked."""


class Kept(BaseModel):
    """A line of the file of answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    asked: str
    """Digest of all that the model was asked about a case."""
    opinions: tuple[Opinion | None, ...]


@dataclass(frozen=True)
class Judged:
    """A case, what the rules say of it, and what the model says of each of its sentences."""

    answer: Answer
    opinions: tuple[Opinion | None, ...]

    @property
    def model_rejects(self) -> bool | None:
        """Whether the model says that a sentence is not carried; None: it did not decide."""
        if Opinion.NOT_CARRIED in self.opinions:
            return True
        return False if set(self.opinions) == {Opinion.CARRIED} else None

    @property
    def rules_reject(self) -> bool | None:
        """Whether the rules raise an alarm; None: they found nothing to look up in some sentence."""
        if self.answer.has_alarm:
            return True
        return None if any(one.verdict is Verdict.UNCHECKED for one in self.answer.claims) else False


@dataclass(frozen=True)
class Line:
    """A line of the totals: how many cases of how many, and the interval of the share."""

    who: str
    what: str
    count: int
    n: int
    low: float
    high: float


WAYS: dict[str, Callable[[Judged], bool]] = {
    "rules": lambda one: bool(one.rules_reject),
    "judge": lambda one: bool(one.model_rejects),
    "rules or judge": lambda one: bool(one.rules_reject or one.model_rejects),
    "rules and judge": lambda one: bool(one.rules_reject and one.model_rejects),
}
"""What is rejected, by whom."""


def totals(found: Sequence[Judged]) -> list[Line]:
    """Return false claims found and true ones rejected in each way, then the agreement and what was left open."""
    shown: list[Line] = []
    for who, rejects in WAYS.items():
        for what, is_true in (("false claims found", False), ("true claims rejected", True)):
            some = [one for one in found if one.answer.case.is_true is is_true]
            shown.append(_line(who, what, sum(map(rejects, some)), len(some)))
    both = decided_by_both(found)
    shown.append(_line("both decide", "agree", sum(one.rules_reject is one.model_rejects for one in both), len(both)))
    shown.append(_line("rules", "undecided", sum(one.rules_reject is None for one in found), len(found)))
    shown.append(_line("judge", "undecided", sum(one.model_rejects is None for one in found), len(found)))
    return shown


def decided_by_both(found: Sequence[Judged]) -> list[Judged]:
    """Return the cases that neither the rules nor the model leave open."""
    return [one for one in found if one.rules_reject is not None and one.model_rejects is not None]


def agreement_by_chance(found: Sequence[Judged]) -> float:
    """Return in what share of cases two would agree that reject as often, but independently (as in Cohen's kappa)."""
    both = decided_by_both(found)
    if not both:
        return 0.0
    rules, model = (sum(map(WAYS[who], both)) / len(both) for who in ("rules", "judge"))
    return rules * model + (1 - rules) * (1 - model)


def _line(who: str, what: str, count: int, n: int) -> Line:
    share = share_of(count, n)
    return Line(who, what, count, n, share.low, share.high)


def by_kind(found: Sequence[Judged]) -> list[Line]:
    """Return of how many cases of each kind the model says that they are not carried."""
    shown: list[Line] = []
    for is_true, kind in sorted({(one.answer.case.is_true, one.answer.case.kind) for one in found}):
        some = [one for one in found if (one.answer.case.is_true, one.answer.case.kind) == (is_true, kind)]
        who = "true, rejected" if is_true else "false, found"
        shown.append(_line(who, kind, sum(map(WAYS["judge"], some)), len(some)))
    return shown


def tables(name: str, found: Sequence[Judged], *, is_totals: bool) -> str:
    """Return for people the totals of a set and, if that is wanted and the set is open, the judge's figures by kind."""
    page = [
        f"{name:<16}  {'':<20}  {'cases':<10}  share  95 % interval",
        *map(_row, totals(found)),
        f"By chance, rules and judge would agree in {agreement_by_chance(found):.0%} of what both decide.",
    ]
    if not is_totals and name in OPEN_SETS:
        page += ["", "The judge by kind", *map(_row, by_kind(found))]
    return "\n".join(page)


def _row(one: Line) -> str:
    share = one.count / one.n if one.n else 0.0
    cases = f"{one.count} of {one.n}"
    return f"{one.who:<16}  {one.what:<20}  {cases:<10}  {share:>5.0%}  {one.low:.0%} to {one.high:.0%}"


def sample(found: Sequence[Answer], first: int | None) -> list[Answer]:
    """Return the cases in the order of asking, the first ones alone if a number is given."""
    order = list(found)
    random.Random(ORDER).shuffle(order)  # noqa: S311 - a sample, not a secret
    return order[:first]


class Answers:
    """What a model said before, and the file in which it is kept.

    Args:
        model: The model's name.
        path: The file; None: none is kept.
    """

    def __init__(self, model: str, path: Path | None) -> None:
        known = path.read_text(encoding="utf-8").splitlines() if path is not None and path.is_file() else []
        self.model = model
        self._path = path
        self._by_digest = {
            one.asked: one.opinions for one in map(Kept.model_validate_json, known) if one.model == model
        }

    def of(self, digest: str) -> tuple[Opinion | None, ...] | None:
        """Return what was said; None when this was not asked yet."""
        return self._by_digest.get(digest)

    def add(self, digest: str, opinions: tuple[Opinion | None, ...]) -> None:
        """Keep an answer, on disk before anything else is asked."""
        self._by_digest[digest] = opinions
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(Kept(model=self.model, asked=digest, opinions=opinions).model_dump_json() + "\n")


async def ask(found: Sequence[Answer], text_of: TextOf, client: LLMClient, kept: Answers) -> list[Judged]:
    """Return the model's opinion of each case, those that are kept without asking again.

    Raises:
        SystemExit: The model does not answer any more.
    """
    judged: list[Judged] = []
    for number, answer in enumerate(found, start=1):
        digest = _digest(answer, text_of)
        opinions = kept.of(digest)
        if opinions is None:
            said = await judge(answer.claims, text_of, client, kept.model)
            if said.problem:
                raise SystemExit(f"asking ended after {number - 1} of {len(found)} cases: {said.problem}")
            opinions = said.answers
            kept.add(digest, opinions)
            print(f"{number} of {len(found)} cases", file=sys.stderr, flush=True)
        judged.append(Judged(answer, opinions))
    return judged


def _digest(answer: Answer, text_of: TextOf) -> str:
    asked = [SYSTEM, *(question_about(claim, text_of) for claim in answer.claims)]
    return hashlib.sha256("\0".join(asked).encode()).hexdigest()


def _facts(found: Sequence[Judged]) -> JsonObject:
    return {
        "totals": [asdict(line) for line in totals(found)],
        "agreement_by_chance": agreement_by_chance(found),
    }


def texts_of(name: str, data: Path) -> dict[str, str]:
    """Return the texts of a set's sources, by id."""
    read = (Text.model_validate_json(line) for line in lines(f"{name}_sources.jsonl"))
    return {one.id: recorded(one.recording, data).text if one.recording else one.text for one in read}


async def judged_sets(given: argparse.Namespace, settings: Settings) -> dict[str, list[Judged]]:
    """Ask about the chosen sets, one after the other."""
    results: dict[str, list[Judged]] = {}
    async with open_judge(settings, given.judge) as (client, model):
        for name in given.set or SETS:
            cases = sample(answers(name, given.data), given.first)
            texts = texts_of(name, given.data)
            results[name] = await ask(cases, texts.get, client, Answers(model, given.answers))
    return results


def main(words: Sequence[str]) -> int:
    """Ask, and print the tables of the sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--judge", required=True, metavar="MODEL", help="the model, as `explorer verify --judge`")
    parser.add_argument("--set", choices=SETS, action="append", help="one of the sets; all by default")
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="the recorded texts")
    parser.add_argument("--first", type=int, metavar="N", help="of each set, the first cases of a random order")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="where answers are kept")
    parser.add_argument("--totals", action="store_true", help="the totals alone; of `blind`, always")
    parser.add_argument("--json", action="store_true", help="the totals as JSON")
    given = parser.parse_args(words)
    try:
        results = asyncio.run(judged_sets(given, settings_of_process()))
    except ExplorerError as error:
        raise SystemExit(f"{error} {error.hint}") from error
    if given.json:
        shown = {name: _facts(found) for name, found in results.items()}
        print(json.dumps(shown, indent=2))
    else:
        print("\n\n".join(tables(name, found, is_totals=given.totals) for name, found in results.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
