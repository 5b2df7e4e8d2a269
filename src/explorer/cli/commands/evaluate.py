"""The command `eval`: a set of questions with known answers, and what their reports are worth."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.commands.catalog import check_team, named_tools
from explorer.cli.commands.trust import settings_to_run
from explorer.cli.screens.formatting import counted, duration, money, one_line, tokens
from explorer.cli.screens.output import aligned, emit_json, emit_page, say
from explorer.cli.settings.options import RunOptions
from explorer.cli.telemetry import show_logs
from explorer.evaluation.benchmarks import published, read_questions, read_reports, write_reports
from explorer.evaluation.evaluate import DEFAULT_PARALLEL, EvalPlan, evaluate, is_evaluation, scores_in
from explorer.evaluation.grading import GradingPlan, mean_grades
from explorer.evaluation.questions import EvalQuestion
from explorer.evaluation.scoring import Score, Share, medians, pairs, score_text, shares
from explorer.run.run import RunHooks
from explorer.schema.errors import ConfigError
from explorer.schema.messages import JsonObject
from explorer.schema.settings import Settings

NOT_ALL = 3
MAX_PARALLEL = 32
MAX_NAMED = 12
OF_TEXTS = ("report present", "right", "found")
"""What can be measured of reports of another system, of which only the text is there."""


@dataclass(frozen=True)
class _Comparison:
    """What the set is compared with: reports of another system, or the runs of another evaluation."""

    name: str
    scores: tuple[Score, ...]
    measures: Sequence[str]
    """The measures that can be compared."""
    reports: Mapping[str, str] = field(default_factory=dict[str, str])
    """The reports by question, where they are those of another system."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EvalOptions(RunOptions):
    """Flags of a set of questions."""

    out: Annotated[
        str | None,
        Parameter(
            name="--out", metavar="DIR", help="Folder of the runs; the same folder continues them. Default: eval/SET."
        ),
    ] = None
    limit: Annotated[int, Parameter(name="--limit", metavar="N", help="Only the first N questions.")] = 0
    parallel: Annotated[int, Parameter(name="--parallel", metavar="N", help="How many are explored at once.")] = (
        DEFAULT_PARALLEL
    )
    max_total_cost: Annotated[
        str | None,
        Parameter(
            name="--max-total-cost",
            metavar="USD",
            help="US dollars for all questions together, or none. Default: 20, where prices are known.",
        ),
    ] = None
    against: Annotated[
        str | None,
        Parameter(
            name="--against",
            metavar="DIR",
            help="Compare with another evaluation's folder, or with another system's reports: a folder with one "
            "ID.md a question, or a file of lines with id and article.",
        ),
    ] = None
    grader: Annotated[
        str | None,
        Parameter(
            name="--grader",
            metavar="MODEL",
            help="Model that grades the reports by the criteria of a benchmark; it should not be one that wrote them.",
        ),
    ] = None


EVAL = EvalOptions()


def evaluation(
    name: Annotated[
        str, Parameter(name="SET", help="A file with one question a line, the folder of a benchmark, or `sample`.")
    ],
    /,
    *,
    options: EvalOptions = EVAL,
) -> int:
    """Ask a set of questions with known answers, and measure the reports: right, cited, supported, and their cost.

    Each question is a run of its own. Stopped at any moment, the same command continues; what has ended is only
    measured again. Limits such as `--max-cost` are those of each question.

    Exit code 0: every question has ended; 3: some have not, and the same command continues them.

    Example: `explorer eval sample --model offline`
    """
    if not 1 <= options.parallel <= MAX_PARALLEL:
        raise ConfigError(f"--parallel {options.parallel} is not allowed", hint=f"allowed is 1 to {MAX_PARALLEL}")
    if options.output is not None:
        raise ConfigError("a set of questions has no single report to write to a file", hint="leave out --output")
    settings = settings_to_run(options).settings
    tools = named_tools(options, settings)
    check_team(settings, tools)
    show_logs(options.verbose)
    questions = read_questions(name, options.limit)
    compared = _compared(options.against, questions)
    folder = Path(options.out).expanduser() if options.out is not None else Path("eval") / Path(name).stem
    plan = EvalPlan(
        settings,
        folder.absolute(),
        options.parallel,
        _total(options.max_total_cost),
        lambda: RunHooks(tools=tools),
        _grading(options.grader, settings, folder.absolute(), questions),
        compared.reports if compared else {},
    )
    progress = _Progress(len(questions), is_quiet=options.quiet)
    try:
        scores = asyncio.run(evaluate(questions, plan, progress.ended))
    except KeyboardInterrupt:
        say(f"stopped after {progress.count} of {counted(len(questions), 'question')}; the same command continues")
        raise
    _show(_Outcome(name, folder, scores, compared), questions, options)
    unended = [score for score in scores if not score.status]
    if unended and not options.quiet:
        say(f"  → {counted(len(unended), 'question')} not ended; the same command continues")
    return NOT_ALL if unended else 0


@dataclass(frozen=True)
class _Outcome:
    """What a set came to."""

    name: str
    folder: Path
    scores: tuple[Score, ...]
    compared: _Comparison | None


def _show(outcome: _Outcome, questions: Sequence[EvalQuestion], options: EvalOptions) -> None:
    """Print the tables, or all of it as JSON; the reports go into one file."""
    name, folder, scores, compared = outcome.name, outcome.folder, outcome.scores, outcome.compared
    reports = write_reports(folder, questions)
    if compared and compared.reports:
        theirs = zip(compared.scores, scores, strict=True)
        graded = tuple(one.model_copy(update={"grade": ours.their_grade}) for one, ours in theirs)
        compared = replace(compared, scores=graded)
    if options.output_format != "text":
        emit_json({**_facts(name, folder, scores, compared), "reports": None if reports is None else str(reports)})
        return
    blocks = [_page(name, folder, scores, compared), _grades_table(options.grader or "", scores, compared)]
    words = published(Path(name).expanduser(), compared.name) if compared else ""
    blocks += [f"Published of {compared.name}: {words}"] if compared and words else []
    emit_page("\n\n".join(filter(None, blocks)))


def _grading(
    model: str | None, settings: Settings, folder: Path, questions: Sequence[EvalQuestion]
) -> GradingPlan | None:
    """Return how reports are graded: by one model for all, without sources, shell and library.

    Raises:
        ConfigError: The set has no criteria.
    """
    if model is None:
        return None
    if not any(question.rubric for question in questions):
        hint = "give the folder of DeepResearch Bench or of DeepResearch Bench II"
        raise ConfigError("--grader has nothing to grade by: the questions have no criteria", hint=hint)
    update: dict[str, object] = {
        "model": model,
        "role_models": {},
        "shell": "off",
        "corpus": None,
        "files": (),
        "judge": "",
    }
    return GradingPlan(settings.model_copy(update=update), folder / "grades")


def _total(text: str | None) -> float | None:
    if text is None:
        return None
    if text.strip().lower() == "none":
        return math.inf
    try:
        value = float(text.strip().lstrip("$"))
    except ValueError:
        value = math.nan
    if not value > 0 or math.isinf(value):
        raise ConfigError(f"--max-total-cost {one_line(text, 40)!r} is not allowed", hint="allowed is 12.50, or none")
    return value


def _compared(folder: str | None, questions: Sequence[EvalQuestion]) -> _Comparison | None:
    """Measure what the set is compared with.

    Raises:
        NotFoundError: The folder has none of the questions.
    """
    if folder is None:
        return None
    if is_evaluation(Path(folder).expanduser()):
        earlier = scores_in(Path(folder).expanduser(), questions)
        return _Comparison(Path(folder).name, earlier, tuple(shares(earlier)))
    texts = read_reports(Path(folder).expanduser(), questions)
    scores = tuple(score_text(question, texts[question.id]) for question in questions)
    return _Comparison(Path(folder).stem, scores, OF_TEXTS, texts)


class _Progress:
    """Writes a line for each question that has ended."""

    def __init__(self, total: int, *, is_quiet: bool) -> None:
        self._total, self._is_quiet = total, is_quiet
        self.count = 0

    def ended(self, score: Score) -> None:
        """Write how a question ended."""
        self.count += 1
        if self._is_quiet:
            return
        words = [
            score.status or "not ended",
            *({True: ["right"], False: ["not right"]}.get(score.right, []) if score.right is not None else []),
            *(["cited"] if score.cited else []),
            money(score.cost_usd),
            duration(score.seconds),
            *([one_line(score.error, 120)] if score.error else []),
        ]
        say(f"[{self.count}/{self._total}] {score.id}: {', '.join(words)}")


def _page(name: str, folder: Path, scores: Sequence[Score], compared: _Comparison | None) -> str:
    measured = shares(scores)
    others = shares(compared.scores) if compared else {}
    header = ("MEASURE", "OF", "SHARE", "95 %", *((compared.name.upper(),) if compared else ()))
    rows = [
        (
            measure,
            f"{share.count} of {share.n}",
            _percent(share),
            _interval(share),
            *((_percent(others[measure]) if measure in compared.measures else "-",) if compared else ()),
        )
        for measure, share in measured.items()
    ]
    blocks = [
        f"{name}: {counted(len(scores), 'question')}, runs in {folder / 'runs'}",
        aligned(header, rows),
        _cost_line(scores),
        *([_pairs_line(scores, compared)] if compared else []),
    ]
    wrong = [score.id for score in scores if score.status and score.right is False]
    if wrong:
        more = f" and {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
        blocks.append(f"Not right: {', '.join(wrong[:MAX_NAMED])}{more}")
    failures = [f"  {score.id}: {one_line(score.error, 200)}" for score in scores if score.error]
    if failures:
        blocks.append("\n".join(["Not ended:", *failures]))
    return "\n\n".join(blocks)


def _grades_table(grader: str, scores: Sequence[Score], compared: _Comparison | None) -> str:
    """Return the means of the grades; empty without any."""
    graded = [score.grade for score in scores if score.grade]
    measured = mean_grades(graded)
    if not measured:
        return ""
    others = mean_grades([score.grade for score in compared.scores if score.grade]) if compared else {}
    header = ("GRADE", "N", "MEAN", "95 %", *((compared.name.upper(),) if compared else ()))
    rows = [
        (
            name,
            str(mean.n),
            f"{100 * mean.mean:.1f}",
            f"{100 * mean.low:.1f}-{100 * mean.high:.1f}" if mean.n > 1 else "-",
            *((f"{100 * others[name].mean:.1f}" if name in others else "-",) if compared else ()),
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


def _pairs_line(scores: Sequence[Score], compared: _Comparison) -> str:
    """Return in how many questions each side alone is right, which says more than the two shares do."""
    found = pairs(scores, compared.scores)
    chance = f"by chance alone with a probability of {found.chance:.2g}"
    return f"Right here and not in {compared.name}: {found.better}; the other way round: {found.worse} ({chance})"


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


def _facts(name: str, folder: Path, scores: Sequence[Score], compared: _Comparison | None) -> JsonObject:
    return {
        "set": name,
        "folder": str(folder),
        "measures": {measure: share.model_dump() for measure, share in shares(scores).items()},
        "medians": medians(scores),
        "grades": _grade_facts(scores),
        "questions": [score.model_dump() for score in scores],
        "against": None
        if compared is None
        else {
            "name": compared.name,
            "measures": {
                key: value.model_dump() for key, value in shares(compared.scores).items() if key in compared.measures
            },
            "pairs": pairs(scores, compared.scores).model_dump(),
            "grades": _grade_facts(compared.scores),
            "questions": [score.model_dump() for score in compared.scores],
        },
    }


def _grade_facts(scores: Sequence[Score]) -> JsonObject:
    return {name: mean.model_dump() for name, mean in mean_grades([one.grade for one in scores if one.grade]).items()}
