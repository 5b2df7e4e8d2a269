"""How many false claims the citation check finds, and how many true ones it takes for false, by kind of claim.

    uv run python bench/citations.py [--set NAME] [--totals] [--failures] [--json]
    uv run python bench/citations.py --attribution FILE.jsonl [--failures] [--json]

Each case is a sentence, the sources that it cites, and whether they say so. The set `blind` is held out: its sentences
were written without a look at the check or at other sets, and nothing but its totals is to be looked at while the check
is changed; the others are for working on it. Intervals: Wilson, 95 %. All but `dev`, `hard` and `heldout` are about
recorded texts of others, which are not in this repository: `--data` names their folder.

`--attribution` reads a file of AttributionBench (github.com/OSU-NLP-Group/AttributionBench), sentences of real systems
that people found attributable to their references, or not. Most of those that are not have no wrong figure or name:
they say more than the reference does, which no rule here looks for.
"""

import argparse
import gzip
import hashlib
import html
import itertools
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from explorer.evaluation.scoring import share_of
from explorer.reports.verify.check import check
from explorer.reports.verify.claims import Claim, Verdict
from explorer.schema.events import Source
from explorer.text.words import sentence_ends

CASES = Path(__file__).resolve().parents[1] / "tests" / "reports" / "verify" / "context"
OPEN_SETS = ("dev", "hard", "heldout", "realdev", "real", "unseen", "report_a", "report_b")
"""Sets whose single cases may be looked at while the check is changed."""
SETS = (*OPEN_SETS, "blind")
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Recorded texts: pages, articles, questions with their paragraphs, and days and threads as Algolia gives them."""
MIN_POINTS = 100
"""A story of a day's list has at least these."""
OWN_MARKS = re.compile(r"\s?\[\d+(?:,\s*\d+)*\]")
"""The citations that the systems of AttributionBench wrote themselves."""
READ = datetime(2026, 4, 1, 8, tzinfo=UTC)


class Text(BaseModel):
    """A source of a set; `recording` names a text that is not in this repository."""

    id: str
    language: str
    title: str
    published: str
    text: str = ""
    recording: str = ""


class Case(BaseModel):
    """A sentence, and whether its sources say so."""

    source: str
    kind: str
    is_true: bool
    text: str


@dataclass(frozen=True)
class Answer:
    """What the check says of a case."""

    case: Case
    claims: tuple[Claim, ...]
    has_alarm: bool

    @property
    def is_supported(self) -> bool:
        """Whether the check says that the sources say so; otherwise it raises an alarm, or leaves it unchecked."""
        return not self.has_alarm and any(claim.verdict is Verdict.SUPPORTED for claim in self.claims)


@dataclass(frozen=True)
class Row:
    """A kind of claim: how many there are, and of how many the check says that they are not supported."""

    kind: str
    is_true: bool
    n: int
    alarms: int
    supported: int
    """Of how many it says that they are; of the others nothing could be looked up."""
    low: float
    high: float


def lines(name: str) -> list[str]:
    """Return the lines of a data file."""
    return (CASES / name).read_text(encoding="utf-8").splitlines()


class Recorded(BaseModel):
    """An article or a page as it was recorded."""

    model_config = ConfigDict(populate_by_name=True)

    title: str
    text: str = Field(validation_alias=AliasChoices("text", "main_content"))


class Comment(BaseModel):
    """A comment, or the story over it."""

    author: str | None = None
    title: str | None = None
    text: str | None = None
    children: list["Comment"] = []

    def lines(self) -> Iterator[str]:
        """Yield the comments below it, each with its author."""
        for one in self.children:
            words = re.sub(r"<[^>]+>", " ", html.unescape(one.text or ""))
            yield f"{one.author}: {words}"
            yield from one.lines()


class Paragraph(BaseModel):
    """A paragraph of a question of HotpotQA."""

    title: str
    sentences: list[str]


class Question(BaseModel):
    """A question of HotpotQA, with what is to be read for it."""

    question: str
    context: list[Paragraph]


class Hit(BaseModel):
    """A story as the search of Hacker News gives it."""

    title: str
    author: str
    points: int
    num_comments: int
    created_at: str


def _question(number: str, data: Path) -> Recorded:
    lines = (data / "qa" / "hotpot50_distractor.jsonl").read_text(encoding="utf-8").splitlines()
    found = Question.model_validate_json(next(line for line in lines if number in line))
    texts = (f"{one.title}\n\n{''.join(one.sentences)}" for one in found.context)
    return Recorded(title=found.question, text="\n\n".join(texts))


def _day(date: str, data: Path) -> Recorded:
    path = data / "hn_snapshot" / "algolia" / "hits_2026-08-10_16.verbatim.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        hits = [Hit.model_validate_json(line) for line in lines if f'"created_at":"{date}' in line]
    shown = sorted((hit for hit in hits if hit.points >= MIN_POINTS), key=lambda hit: -hit.points)
    stories = (
        f"{number}. {hit.title}\n{hit.points} points by {hit.author}, {hit.num_comments} comments, {hit.created_at}"
        for number, hit in enumerate(shown, start=1)
    )
    return Recorded(title=f"Hacker News on {date}", text="\n\n".join(stories))


def recorded(name: str, data: Path) -> Recorded:
    """Return a recorded text, such as `articles/19704448`.

    Raises:
        FileNotFoundError: The recordings are not in this folder.
    """
    kind, _, number = name.partition("/")
    if kind == "pages":
        return Recorded.model_validate_json((data / "pages" / "gold" / f"{number}.json").read_text(encoding="utf-8"))
    if kind == "questions":
        return _question(number, data)
    if kind == "days":
        return _day(number, data)
    if kind == "comments":
        items = data / "hn_snapshot" / "algolia" / "api" / "v1" / "items"
        story = Comment.model_validate_json((items / f"{number}.json").read_text(encoding="utf-8"))
        return Recorded(title=story.title or "", text="\n".join(story.lines()))
    with gzip.open(data / "hn_snapshot" / "articles.jsonl.gz", "rt", encoding="utf-8") as articles:
        return Recorded.model_validate_json(next(line for line in articles if f'"hn_id":{number},' in line))


def _filled(text: Text, data: Path) -> Text:
    if not text.recording:
        return text
    found = recorded(text.recording, data)
    return text.model_copy(update={"title": found.title, "text": found.text})


def answers(name: str, data: Path = DATA) -> list[Answer]:
    """Check every case of a set."""
    read = (Text.model_validate_json(line) for line in lines(f"{name}_sources.jsonl"))
    texts = {one.id: _filled(one, data) for one in read}
    sources = {one.id: _source(one) for one in texts.values()}

    def text_of(identifier: str) -> str | None:
        return texts[identifier].text if identifier in texts else None

    found: list[Answer] = []
    for case in (Case.model_validate_json(line) for line in lines(f"{name}_cases.jsonl")):
        verification = check(case.text, sources, text_of)
        found.append(Answer(case, verification.claims, bool(verification.faults)))
    return found


class Attribution(BaseModel):
    """A line of AttributionBench."""

    claim: str
    references: list[str]
    webpage_references: list[str] = []
    attribution_label: str
    src_dataset: str


def attributions(path: Path) -> list[Answer]:
    """Check every claim of a file of AttributionBench, each of its sentences with all of its references."""
    found: list[Answer] = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            continue
        one = Attribution.model_validate_json(line)
        texts = {
            f"S{number}": text
            for number, text in enumerate(filter(str.strip, [*one.references, *one.webpage_references]), start=1)
        }
        sources = {
            name: _source(Text(id=name, language="en", title="", published="", text=text))
            for name, text in texts.items()
        }
        marks = "".join(f"[{name}]" for name in texts)
        claim = OWN_MARKS.sub("", one.claim)
        ends = [*(end.end for end in sentence_ends(claim)), len(claim)]
        pieces = [claim[start:end].strip() for start, end in itertools.pairwise([0, *sorted(set(ends))])]
        draft = " ".join(f"{piece} {marks}" for piece in pieces if piece)
        verification = check(draft, sources, texts.get)
        is_true = one.attribution_label == "attributable"
        case = Case(source="", kind=one.src_dataset, is_true=is_true, text=one.claim)
        found.append(Answer(case, verification.claims, bool(verification.faults)))
    return found


def _source(text: Text) -> Source:
    return Source(
        id=text.id,
        url=f"https://{text.id.lower()}.example/",
        title=text.title,
        kind="page",
        via="direct",
        retrieved=READ,
        published=text.published,
        language=text.language,
        sha256=hashlib.sha256(text.text.encode()).hexdigest(),
        chars=len(text.text),
    )


def rows(found: Sequence[Answer]) -> list[Row]:
    """Return one row for each kind of claim, and the totals of false and of true ones as the last two."""
    by_kind: dict[tuple[bool, str], list[Answer]] = defaultdict(list)
    for answer in found:
        by_kind[answer.case.is_true, answer.case.kind].append(answer)
    shown = [_row(kind, some, is_true=is_true) for (is_true, kind), some in sorted(by_kind.items())]
    false, true = ([one for one in found if one.case.is_true is is_true] for is_true in (False, True))
    return [*shown, _row("ALL FALSE CLAIMS", false, is_true=False), _row("ALL TRUE CLAIMS", true, is_true=True)]


def _row(kind: str, some: Sequence[Answer], *, is_true: bool) -> Row:
    alarms = sum(one.has_alarm for one in some)
    share = share_of(alarms, len(some))
    supported = sum(one.is_supported for one in some)
    return Row(kind, is_true, len(some), alarms, supported, share.low, share.high)


def page(name: str, shown: Iterable[Row]) -> str:
    """Return the table for people."""
    table = [f"{name:<20}  {'n':>4}  {'found':>5}  {'false alarms':>12}  share  {'95 % interval':<13}  supported"]
    for row in shown:
        found, alarms = ("", row.alarms) if row.is_true else (row.alarms, "")
        share = row.alarms / row.n if row.n else 0.0
        between = f"{row.low:.0%} to {row.high:.0%}"
        figures = f"{row.n:>4}  {found:>5}  {alarms:>12}  {share:>5.0%}  {between:<13}  {row.supported:>9}"
        table.append(f"{row.kind:<20}  {figures}")
    return "\n".join(table)


def failures(found: Iterable[Answer]) -> str:
    """Return the cases in which the check is wrong, with what it says."""
    wrong: list[str] = []
    for answer in found:
        if answer.has_alarm is answer.case.is_true:
            wrong.append(
                f"{'false alarm' if answer.case.is_true else 'missed'}, {answer.case.kind}: {answer.case.text}"
            )
            wrong += [f"    {claim.verdict}: {claim.reason}" for claim in answer.claims]
    return "\n".join(wrong)


def main(words: Sequence[str]) -> int:
    """Print the tables of the sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", choices=SETS, action="append", help="one of the sets; all by default")
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="the recorded texts")
    parser.add_argument("--totals", action="store_true", help="the totals alone")
    parser.add_argument("--failures", action="store_true", help="also each failing case of the other sets")
    parser.add_argument("--json", action="store_true", help="rows as JSON")
    parser.add_argument("--attribution", type=Path, metavar="FILE", help="a file of AttributionBench instead")
    given = parser.parse_args(words)
    if given.attribution:
        results = {given.attribution.stem[:20]: attributions(given.attribution)}
    else:
        results = {name: answers(name, given.data) for name in given.set or SETS}
    tables = {name: rows(found)[-2 if given.totals else 0 :] for name, found in results.items()}
    if given.json:
        print(json.dumps({name: [asdict(row) for row in table] for name, table in tables.items()}, indent=2))
        return 0
    print("\n\n".join(page(name, table) for name, table in tables.items()))
    shown = (
        [one for name in OPEN_SETS for one in results.get(name, ())]
        if given.attribution is None
        else next(iter(results.values()))
    )
    if given.failures:
        print(f"\n{failures(shown)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
