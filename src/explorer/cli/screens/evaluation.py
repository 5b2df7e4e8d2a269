"""What an evaluation prints: the measures, the calls, the cost, the grades, and what it is compared with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from explorer.cli.screens.output import aligned
from explorer.evaluation.grading import mean_grades
from explorer.evaluation.questions import published
from explorer.evaluation.scoring import OF_DAYS, PAIRED, TOKENS, Pairs, Score, Share, medians, pairs, shares
from explorer.observe.formatting import counted, duration, money, one_line, tokens
from explorer.schema.messages import JsonObject

MAX_NAMED = 12
OF_TEXTS = ("report present", "right", "found", *OF_DAYS)
"""What can be measured of reports of another system, of which only the text is there."""


@dataclass(frozen=True)
class EvalComparison:
    """What a set is compared with: other roles, reports of another system, or the runs of another evaluation."""

    name: str
    scores: tuple[Score, ...]
    measures: Sequence[str]
    """The measures that can be compared."""
    reports: Mapping[str, str] = field(default_factory=dict[str, str])
    """The reports by question, where they are those of another system."""


@dataclass(frozen=True)
class Evaluated:
    """What was run with one set of roles."""

    label: str
    """The name of the set of roles; empty where there is only one."""
    folder: Path
    scores: tuple[Score, ...]
    reports: Path | None
    """The file with all reports, where the questions are those of a benchmark."""


def evaluation_page(name: str, found: Evaluated, compared: Sequence[EvalComparison], grader: str) -> str:
    """Return the page with all tables.

    Args:
        name: The set's name, or its path.
        found: What was run.
        compared: What it is compared with.
        grader: The model that graded the reports; empty without one.
    """
    scores = found.scores
    blocks = [
        f"{name}: {counted(len(scores), 'question')}, runs in {found.folder / 'runs'}",
        _table(found, compared),
        _calls_line(scores),
        "\n".join(f"{label}{_cost_line(one)}" for label, one in _costed(found, compared)),
        *(_paired(f"in {found.label}" if found.label else "here", scores, one) for one in compared),
        _grades_table(grader, scores, compared),
        *(_published(name, one) for one in compared),
    ]
    wrong = [score.id for score in scores if score.status and score.right is False]
    if wrong:
        more = f" and {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
        blocks.append(f"Not right: {', '.join(wrong[:MAX_NAMED])}{more}")
    failures = [f"  {score.id}: {one_line(score.error, 200)}" for score in scores if score.error]
    if failures:
        blocks.append("\n".join(["Not ended:", *failures]))
    return "\n\n".join(filter(None, blocks))


def _table(found: Evaluated, compared: Sequence[EvalComparison]) -> str:
    others = [(one, shares(one.scores)) for one in compared]
    header = ("MEASURE", "OF", found.label.upper() or "SHARE", "95 %", *(one.name.upper() for one in compared))
    rows = [
        (
            measure,
            f"{share.count} of {share.n}",
            _percent(share),
            _interval(share),
            *(_percent(of[measure]) if measure in one.measures else "-" for one, of in others),
        )
        for measure, share in shares(found.scores).items()
    ]
    return aligned(header, rows)


def _calls_line(scores: Sequence[Score]) -> str:
    counts = {
        "malformed": sum(one.malformed_calls for one in scores),
        "invalid": sum(one.invalid_calls for one in scores),
        "repaired": sum(one.repaired_calls for one in scores),
        "refused as repeated": sum(one.repeated_calls for one in scores),
    }
    total = counted(sum(one.calls for one in scores), "call")
    return f"{total}: {', '.join(f'{count} {words}' for words, count in counts.items())}"


def _costed(found: Evaluated, compared: Sequence[EvalComparison]) -> list[tuple[str, Sequence[Score]]]:
    """Return the scores that have a cost, each with the beginning of its line."""
    if not found.label:
        return [("", found.scores)]
    others = [(f"{one.name}: ", one.scores) for one in compared if one.measures is not OF_TEXTS]
    return [(f"{found.label}: ", found.scores), *others]


def _paired(label: str, scores: Sequence[Score], compared: EvalComparison) -> str:
    """Return in how many questions one side is better, which says more than the two shares do."""
    rows = [
        (measure, str(pair.better), str(pair.worse), f"{pair.chance:.2g}")
        for measure, pair in _all_pairs(scores, compared).items()
    ]
    header = ("QUESTION BY QUESTION", f"BETTER {label.upper()}", f"BETTER IN {compared.name.upper()}", "BY CHANCE")
    return aligned(header, rows)


def _all_pairs(scores: Sequence[Score], compared: EvalComparison) -> dict[str, Pairs]:
    known = {*shares(scores), TOKENS}
    measures = [one for one in PAIRED if one in known and (compared.measures is not OF_TEXTS or one in OF_TEXTS)]
    return {measure: pairs(scores, compared.scores, measure) for measure in measures}


def _published(name: str, compared: EvalComparison) -> str:
    words = published(Path(name).expanduser(), compared.name)
    return f"Published of {compared.name}: {words}" if words else ""


def _grades_table(grader: str, scores: Sequence[Score], compared: Sequence[EvalComparison]) -> str:
    """Return the means of the grades; empty without any."""
    graded = [score.grade for score in scores if score.grade]
    measured = mean_grades(graded)
    if not measured:
        return ""
    others = [mean_grades([score.grade for score in one.scores if score.grade]) for one in compared]
    header = ("GRADE", "N", "MEAN", "95 %", *(one.name.upper() for one in compared))
    rows = [
        (
            name,
            str(mean.n),
            f"{100 * mean.mean:.1f}",
            f"{100 * mean.low:.1f}-{100 * mean.high:.1f}" if mean.n > 1 else "-",
            *(f"{100 * other[name].mean:.1f}" if name in other else "-" for other in others),
        )
        for name, mean in measured.items()
    ]
    asked, given = sum(grade.criteria for grade in graded), sum(grade.graded for grade in graded)
    cut = sum(grade.is_cut for grade in graded)
    words = [
        f"Graded by {grader}: {given} of {asked} criteria",
        *([f"{counted(cut, 'report')} too long to be graded whole"] if cut else []),
    ]
    return f"{aligned(header, rows)}\n\n{'; '.join(words)}"


def _percent(share: Share) -> str:
    return f"{100 * share.share:.0f} %" if share.n else "-"


def _interval(share: Share) -> str:
    return f"{100 * share.low:.0f}-{100 * share.high:.0f} %" if share.n else "-"


def _cost_line(scores: Sequence[Score]) -> str:
    middle = medians(scores)
    costs = [score.cost_usd for score in scores]
    total = (
        None
        if any(cost is None for cost, score in zip(costs, scores, strict=True) if score.status)
        else sum(cost or 0.0 for cost in costs)
    )
    if middle["seconds"] is None:
        return "No question has ended."
    each = f"{duration(middle['seconds'])}, {tokens(int(middle['tokens'] or 0))} tokens, {middle['steps']:.0f} steps"
    return f"Median of a question: {each}, {money(middle['cost_usd'])}; all together: {money(total)}"


def evaluation_facts(name: str, found: Evaluated, compared: Sequence[EvalComparison]) -> JsonObject:
    """Return the same as JSON, with the score of each question."""
    return {
        "set": name,
        "roles": found.label,
        "folder": str(found.folder),
        "measures": {measure: share.model_dump() for measure, share in shares(found.scores).items()},
        "medians": medians(found.scores),
        "grades": _grade_facts(found.scores),
        "reports": None if found.reports is None else str(found.reports),
        "questions": [score.model_dump() for score in found.scores],
        "compared": [_compared_facts(found.scores, one) for one in compared],
    }


def _compared_facts(scores: Sequence[Score], compared: EvalComparison) -> JsonObject:
    known = {key: value.model_dump() for key, value in shares(compared.scores).items() if key in compared.measures}
    return {
        "name": compared.name,
        "measures": known,
        "pairs": {measure: pair.model_dump() for measure, pair in _all_pairs(scores, compared).items()},
        "grades": _grade_facts(compared.scores),
        "questions": [score.model_dump() for score in compared.scores],
    }


def _grade_facts(scores: Sequence[Score]) -> JsonObject:
    return {name: mean.model_dump() for name, mean in mean_grades([one.grade for one in scores if one.grade]).items()}
