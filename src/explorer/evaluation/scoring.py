"""What is measured of a run and of a report: rules, no model. All of it is computed from what is on disk."""

import math
import re
import statistics
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from explorer.evaluation.grading import Z95, Grade
from explorer.evaluation.news_days import measured_day
from explorer.evaluation.questions import EvalQuestion, file_names
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.observe.costs import spending_of
from explorer.reports.verify.check import check
from explorer.reports.verify.claims import Claim, TextOf, Verdict
from explorer.reports.verify.results import Draft, draft_of, text_reader
from explorer.run.finish import written_report
from explorer.schema.errors import NotFoundError
from explorer.schema.events import JournalRecord, NoteAdded, Status, ToolFinished, TurnTaken
from explorer.schema.messages import Frozen
from explorer.schema.reasons import EndCause, ErrorCode, NoteReason
from explorer.text.frontmatter import without_frontmatter
from explorer.workspace.workspace import Workspace

ANSWER_CHARS = 600
"""An answer has to be in the first paragraphs of a report, or in its summary; elsewhere it only counts as found."""
ARTICLES = frozenset({"a", "an", "the"})
BY_ITSELF = frozenset({EndCause.OTHER, EndCause.ANSWERED, EndCause.FINISHED, EndCause.FOUND_NOTHING})
LOOPS = frozenset({NoteReason.REPEATING, NoteReason.NOTHING_NEW})
"""Notes that an agent gets when its calls bring the same again, or nothing."""


class Score(Frozen):
    """What was measured of one question. Counts are whole numbers; None: it does not apply."""

    id: str
    status: str
    """The run's status; empty while it has not ended."""
    reason: str = ""
    error: str = ""
    """Why there is no run, or why it did not end; empty when it did."""
    has_report: bool = False
    """Whether an agent wrote a report; the engine's own pages do not count."""
    ended_by_itself: bool = False
    """Whether it ended without reaching a limit, and without failing."""
    right: bool | None = None
    """Whether an accepted answer is in the summary or in the first paragraphs."""
    found: bool | None = None
    """Whether an accepted answer is anywhere in the report."""
    cited: bool | None = None
    """Whether a sentence with the answer cites a source whose text has it."""
    supporting: int | None = None
    """How many of the documents that the answer follows from are cited."""
    supporting_of: int = 0
    supported: int = 0
    """Cited sentences whose quotes and figures are in their sources."""
    checked: int = 0
    """Cited sentences that could be checked."""
    citations: int = 0
    """Cited sentences."""
    uncited: int = 0
    """Sentences with a quote or a figure and no citation."""
    judged: int = 0
    """Cited sentences that the model of `--judge` was asked about."""
    judged_supported: int = 0
    """Those that it says their sources support."""
    stories: int | None = None
    """The number of the day's biggest stories that a digest names; None: it is no digest of a recorded day."""
    stories_of: int = 0
    discussed: int = 0
    """The number of named stories whose comments it links to."""
    linked: int = 0
    """The number of discussions of Hacker News that it links to."""
    linked_of_day: int = 0
    """The number of linked discussions that are of that day."""
    linked_notable: int = 0
    """The number of linked discussions that are among the day's 30 biggest."""
    figures: int = 0
    """Points and numbers of comments that it states of a story."""
    figures_right: int = 0
    calls: int = 0
    failed_calls: int = 0
    malformed_calls: int = 0
    """Calls whose arguments are not JSON."""
    invalid_calls: int = 0
    """Other calls that name no tool, or whose arguments do not fit it."""
    repaired_calls: int = 0
    """Calls that the model wrote as text and the engine found there."""
    repeated_calls: int = 0
    """Calls that were refused because they had brought the same too often."""
    has_looped: bool = False
    """Whether a call was refused as repeated, or an agent was warned that nothing new came of its turns."""
    steps: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    """US dollars; None when a price is not known."""
    seconds: float = 0.0
    grade: Grade | None = None
    """A grader's; None where none was asked."""
    their_grade: Grade | None = None
    """The same grader's grade of the other system's report."""


def score_run(question: EvalQuestion, folder: Path) -> Score:
    """Measure a run as far as it is on disk.

    Args:
        question: The question it was asked.
        folder: The run's folder.

    Returns:
        All that can be measured; without a status when the run has not ended.
    """
    records = read_records(folder)
    run_state = RunState.of_records(records)
    spending = spending_of(records)
    ended = run_state.finished
    workspace = Workspace(folder)
    score = Score(
        id=question.id,
        status=str(ended.status) if ended else "",
        reason=ended.reason if ended else "",
        has_report=bool(written_report(run_state, workspace)),
        ended_by_itself=ended is not None and ended.cause in BY_ITSELF and ended.status is not Status.FAILED,
        steps=spending.total.turns,
        tokens=run_state.usage.total_tokens,
        cost_usd=spending.total.cost_usd,
        seconds=spending.seconds,
    )
    of_report = _of_report(question, run_state, workspace) if score.has_report else _without_report(question)
    return score.model_copy(update=_of_calls(records) | of_report)


def _of_calls(records: Sequence[JournalRecord]) -> dict[str, object]:
    """Return what became of the calls: how many were valid, repaired, repeated."""
    events = [record.event for record in records]
    results = [event for event in events if isinstance(event, ToolFinished)]
    turns = [event.turn for event in events if isinstance(event, TurnTaken)]
    codes = [result.data.get("code") for result in results]
    malformed = sum(bool(call.problem) for turn in turns for call in turn.calls)
    repeated = codes.count(ErrorCode.REPEATED)
    return {
        "calls": len(results),
        "failed_calls": sum(not result.success for result in results),
        "malformed_calls": malformed,
        "invalid_calls": max(0, codes.count(ErrorCode.INVALID_CALL) - malformed),
        "repaired_calls": sum(len(turn.calls) for turn in turns if turn.has_written_calls),
        "repeated_calls": repeated,
        "has_looped": repeated > 0 or any(isinstance(one, NoteAdded) and one.reason in LOOPS for one in events),
    }


def _of_day(question: EvalQuestion, report: str) -> dict[str, int]:
    """Look for the stories of a recorded day in a report."""
    return measured_day(question.day, report, is_in) if question.day is not None else {}


def _without_report(question: EvalQuestion) -> dict[str, object]:
    known = False if question.answers else None
    supporting = 0 if question.supporting else None
    return {
        "right": known,
        "found": known,
        "cited": known,
        "supporting": supporting,
        "supporting_of": len(question.supporting),
        **_of_day(question, ""),
    }


def _of_report(question: EvalQuestion, run_state: RunState, workspace: Workspace) -> dict[str, object]:
    try:
        draft, text_of = draft_of(workspace), text_reader(workspace)
    except NotFoundError:
        return _without_report(question)
    verification = check(draft.text, run_state.sources, text_of)
    lead = run_state.lead
    summary = lead.finished.summary if lead is not None and lead.finished is not None else ""
    cited_ids = {identifier for claim in verification.claims for identifier in claim.ids}
    urls = [run_state.sources[one].url for one in cited_ids if one in run_state.sources]
    counts = verification.verdicts
    latest = run_state.judged[-1] if run_state.judged else None
    return {
        **_of_answer(question, draft, summary, verification.claims, text_of),
        **_of_day(question, without_frontmatter(workspace.read_text(draft.path))),
        "supporting": _supporting_cited(question, urls) if question.supporting else None,
        "supporting_of": len(question.supporting),
        "supported": counts[Verdict.SUPPORTED],
        "checked": sum(number for verdict, number in counts.items() if verdict != Verdict.UNCHECKED),
        "citations": len(verification.claims),
        "uncited": len(verification.uncited),
        **({"judged": latest.asked, "judged_supported": latest.carried} if latest is not None else {}),
    }


def _of_answer(
    question: EvalQuestion, draft: Draft, summary: str, claims: Iterable[Claim], text_of: TextOf
) -> dict[str, object]:
    """Look for the accepted answers in a report."""
    if not question.answers:
        return {}
    body = without_frontmatter(draft.text)
    is_right, is_found = _answered(question, body, summary)
    is_cited = any(
        is_in(answer, claim.sentence) and any(is_in(answer, text_of(one) or "") for one in claim.ids)
        for claim in claims
        for answer in question.answers
    )
    return {
        "right": is_right,
        "found": is_found,
        # A source says neither "yes" nor "no": there, citing anything has to do.
        "cited": is_right and any(claim.ids for claim in claims) if _is_yes_or_no(question) else is_cited,
    }


def _answered(question: EvalQuestion, body: str, summary: str = "") -> tuple[bool, bool]:
    """Return whether an accepted answer is in the summary or the first paragraphs, and whether it is anywhere."""
    is_right = any(is_in(answer, text) for answer in question.answers for text in (summary, answer_part(body)))
    return is_right, is_right or any(is_in(answer, body) for answer in question.answers)


def _is_yes_or_no(question: EvalQuestion) -> bool:
    return all(comparable(answer) in {"yes", "no"} for answer in question.answers)


def score_text(question: EvalQuestion, report: str) -> Score:
    """Measure a report of another system, of which only the text is there."""
    if not question.answers:
        score = Score(id=question.id, status="complete", has_report=bool(report.strip()))
        return score.model_copy(update=_of_day(question, report))
    body = without_frontmatter(report)
    is_right, is_found = _answered(question, body)
    return Score(id=question.id, status="complete", has_report=bool(body.strip()), right=is_right, found=is_found)


def answer_part(report: str) -> str:
    """Return the beginning of a report, without its title and the notices above it."""
    lines = [line for line in report.splitlines() if not line.startswith(("# ", "> "))]
    return "\n".join(lines).strip()[:ANSWER_CHARS]


def comparable(text: str) -> str:
    """Return text in a form in which answers are compared: words without case, accents, articles and marks."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(character for character in plain if not unicodedata.combining(character))
    # Thousands and decimals stay: 1,200 and 1200 are one number.
    letters = re.sub(r"(?<=\d),(?=\d{3})", "", letters)
    words = re.sub(r"[^\w.]+", " ", letters).replace("_", " ").split()
    return " ".join(word.strip(".") for word in words if word.strip(".") and word not in ARTICLES)


def is_in(answer: str, text: str) -> bool:
    """Return whether an answer is in a text, as whole words."""
    wanted = comparable(answer)
    return bool(wanted) and f" {wanted} " in f" {comparable(text)} "


def _supporting_cited(question: EvalQuestion, urls: Sequence[str]) -> int:
    names = file_names(question)
    files = {names[title] for title in question.supporting if title in names}
    return sum(any(url.endswith(name) for url in urls) for name in files)


class Share(Frozen):
    """A share of a sample, with the interval in which the true one is with 95 % confidence (Wilson's)."""

    count: int
    n: int
    """The size of the sample; 0: nothing could be measured, and share and interval mean nothing."""
    share: float
    low: float
    high: float


def share_of(count: int, n: int) -> Share:
    """Return a share with its interval; for n = 0 the interval is everything."""
    if not n:
        return Share(count=0, n=0, share=0.0, low=0.0, high=1.0)
    part, spread = count / n, Z95**2 / n
    middle = (part + spread / 2) / (1 + spread)
    half = Z95 / (1 + spread) * math.sqrt(part * (1 - part) / n + spread / (4 * n))
    return Share(count=count, n=n, share=part, low=max(0.0, middle - half), high=min(1.0, middle + half))


Measure = tuple[Callable[[Score], int], Callable[[Score], int]]
"""What counts of a score, and of how many."""
SHARES: Mapping[str, Measure] = {
    "report present": (lambda one: one.has_report, lambda _: 1),
    "report cites sources": (lambda one: one.citations > 0, lambda one: one.has_report),
    "ended by itself": (lambda one: one.ended_by_itself, lambda _: 1),
    "without a loop": (lambda one: bool(one.status) and not one.has_looped, lambda _: 1),
    "right": (lambda one: bool(one.right), lambda one: one.right is not None),
    "found": (lambda one: bool(one.found), lambda one: one.right is not None),
    "cited": (lambda one: bool(one.cited), lambda one: one.cited is not None),
    "documents cited": (
        lambda one: one.supporting or 0,
        lambda one: 0 if one.supporting is None else one.supporting_of,
    ),
    "citations supported": (lambda one: one.supported, lambda one: one.checked),
    "facts cited": (lambda one: one.citations, lambda one: one.citations + one.uncited),
}
JUDGED: Mapping[str, Measure] = {
    "citations supported, by the judge": (lambda one: one.judged_supported, lambda one: one.judged),
    "facts supported, by the judge": (
        lambda one: one.judged_supported,
        lambda one: one.judged + one.uncited if one.judged else 0,
    ),
}
"""The judge's precision and recall of citations."""
OF_DAYS: Mapping[str, Measure] = {
    "biggest stories named": (lambda one: one.stories or 0, lambda one: one.stories_of),
    "named with their comments": (lambda one: one.discussed, lambda one: one.stories or 0),
    "discussions of that day": (lambda one: one.linked_of_day, lambda one: one.linked),
    "discussions among the 30 biggest": (lambda one: one.linked_notable, lambda one: one.linked),
    "points and comments right": (lambda one: one.figures_right, lambda one: one.figures),
}
"""The measures of a digest of a recorded day."""
OF_CALLS: Mapping[str, Measure] = {
    "calls valid": (lambda one: one.calls - one.malformed_calls - one.invalid_calls, lambda one: one.calls),
    "calls that worked": (lambda one: one.calls - one.failed_calls, lambda one: one.calls),
}


def shares(scores: Sequence[Score]) -> dict[str, Share]:
    """Return the shares of all questions, by what is measured, in the order in which they are shown."""
    measures = {
        **SHARES,
        **(JUDGED if any(one.judged for one in scores) else {}),
        **(OF_DAYS if any(one.stories is not None for one in scores) else {}),
        **OF_CALLS,
    }
    return {name: share_of(sum(map(count, scores)), sum(map(of, scores))) for name, (count, of) in measures.items()}


class Pairs(Frozen):
    """Two answers to the same questions: in how many one of them is better."""

    better: int
    worse: int
    chance: float
    """The probability of a difference so large between two systems that are equally good (sign test)."""


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


TOKENS = "fewer tokens"
PAIRED: Mapping[str, Callable[[Score], float | None]] = {
    "right": lambda one: one.right,
    "found": lambda one: one.found,
    "cited": lambda one: one.cited,
    "citations supported": lambda one: _ratio(one.supported, one.checked),
    "facts cited": lambda one: _ratio(one.citations, one.citations + one.uncited),
    "biggest stories named": lambda one: one.stories,
    TOKENS: lambda one: -one.tokens if one.status else None,
}
"""What is compared question by question, each with its value; None: it does not apply."""


def pairs(scores: Sequence[Score], others: Sequence[Score], measure: str = "right") -> Pairs:
    """Compare two evaluations of a set, question by question.

    Args:
        scores: One of them.
        others: The other one; questions that are not in both, or to which the measure does not apply, do not count.
        measure: A key of `PAIRED`.

    Returns:
        The number of questions in which only one side is better, and how far that may be chance.
    """
    value = PAIRED[measure]
    theirs = {one.id: value(one) for one in others}
    both = [(value(one), theirs.get(one.id)) for one in scores]
    known = [(ours, other) for ours, other in both if ours is not None and other is not None]
    better, worse = sum(ours > other for ours, other in known), sum(other > ours for ours, other in known)
    differing = better + worse
    tail = sum(math.comb(differing, k) for k in range(min(better, worse) + 1)) / 2**differing
    return Pairs(better=better, worse=worse, chance=min(1.0, 2 * tail))


def medians(scores: Sequence[Score]) -> dict[str, float | None]:
    """Return the medians of what a question takes: seconds, tokens, steps and US dollars; None: not known."""
    ended = [one for one in scores if one.status]
    costs = [one.cost_usd for one in ended if one.cost_usd is not None]
    return {
        "seconds": statistics.median([one.seconds for one in ended]) if ended else None,
        "tokens": statistics.median([one.tokens for one in ended]) if ended else None,
        "steps": statistics.median([one.steps for one in ended]) if ended else None,
        "cost_usd": statistics.median(costs) if costs else None,
    }
