"""The command `eval`: a set of questions with known answers, and what their reports are worth."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.commands.catalog import check_team, named_tools
from explorer.cli.commands.trust import settings_to_run
from explorer.cli.screens.evaluation import OF_TEXTS, EvalComparison, Evaluated, evaluation_facts, evaluation_page
from explorer.cli.screens.output import emit_json, emit_page, say
from explorer.cli.settings.options import RunOptions
from explorer.cli.telemetry import show_logs
from explorer.evaluation.evaluate import DEFAULT_PARALLEL, NO_MONEY, EvalPlan, evaluate, is_evaluation, scores_in
from explorer.evaluation.grading import GradingPlan
from explorer.evaluation.questions import EvalQuestion, read_questions, read_reports, write_reports
from explorer.evaluation.scoring import Score, score_text, shares
from explorer.observe.formatting import counted, duration, money, one_line
from explorer.run.hooks import RunHooks
from explorer.schema.errors import ConfigError
from explorer.schema.settings import Settings

NOT_ALL = 3
BUILT_IN = "built-in"
"""The name of explorer's own roles among those of `--roles`."""
MAX_PARALLEL = 32


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
            help="US dollars for all questions together, earlier commands included, or none. Default: 20, where prices "
            "are known.",
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

    Several sets of roles, `--roles built-in --roles my-roles`, answer the same questions and are compared one by one.

    Each question is a run of its own. Stopped at any moment, the same command continues; what has ended is only
    measured again. Limits such as `--max-cost` are those of each question.

    Exit code 0: every question has ended; 3: some have not, and the same command continues them.

    Example: `explorer eval sample --model offline`
    """
    if not 1 <= options.parallel <= MAX_PARALLEL:
        raise ConfigError(f"--parallel {options.parallel} is not allowed", hint=f"allowed is 1 to {MAX_PARALLEL}")
    if options.output is not None:
        raise ConfigError("a set of questions has no single report to write to a file", hint="leave out --output")
    if options.notify:
        raise ConfigError("--notify is for one run", hint="leave out --notify")
    plans = _plans(name, options)
    show_logs(options.verbose)
    questions = read_questions(name, options.limit)
    against = _compared(options.against, questions)
    found: list[Evaluated] = []
    for label, plan in plans.items():
        if label and not options.quiet:
            say(f"roles {label}")
        graded = replace(
            plan,
            grading=_grading(options.grader, plan.settings, plan.folder, questions),
            others=against.reports if against is not None and not found else {},
        )
        scores = _asked(questions, graded, is_quiet=options.quiet)
        found.append(Evaluated(label, plan.folder, scores, write_reports(plan.folder, questions)))
    _show(name, found, against, options)
    unended = sum(not score.status for one in found for score in one.scores)
    if unended and not options.quiet:
        is_short = any(score.error == NO_MONEY for one in found for score in one.scores)
        what = "a higher --max-total-cost" if is_short else "the same command"
        say(f"  → {counted(unended, 'question')} not ended; {what} continues")
    return NOT_ALL if unended else 0


def _plans(name: str, options: EvalOptions) -> dict[str, EvalPlan]:
    """Return what is run: one plan for each set of roles, by its label, which is empty where there is only one.

    Raises:
        ConfigError: A setting or a role cannot be used, or a set of roles is given twice.
    """
    folder = Path(options.out).expanduser() if options.out is not None else Path("eval") / Path(name).stem
    several = len(options.roles) > 1
    plans: dict[str, EvalPlan] = {}
    for number, roles in enumerate(options.roles or ("",)):
        asked = replace(
            options, roles=(roles,) if roles not in {"", BUILT_IN} else (), quiet=options.quiet or number > 0
        )
        settings = settings_to_run(asked).settings
        tools = named_tools(asked, settings)
        check_team(settings, tools)
        label = _label(roles) if several else ""
        if label in plans:
            hint = "each has the name of its folder; copy one to another name"
            raise ConfigError(f"two sets of roles are called {label}", hint=hint)
        place = (folder / label if several else folder).absolute()
        plans[label] = EvalPlan(
            settings,
            place,
            options.parallel,
            _total(options.max_total_cost),
            partial(RunHooks, tools=tools),
            parts=max(1, len(options.roles)),
        )
    return plans


def _label(roles: str) -> str:
    return Path(roles).expanduser().absolute().name if roles not in {"", BUILT_IN} else BUILT_IN


def _asked(questions: Sequence[EvalQuestion], plan: EvalPlan, *, is_quiet: bool) -> tuple[Score, ...]:
    """Ask all questions, with a line for each that ends."""
    progress = _Progress(len(questions), is_quiet=is_quiet)
    try:
        return asyncio.run(evaluate(questions, plan, progress.ended))
    except KeyboardInterrupt:
        say(f"stopped after {progress.count} of {counted(len(questions), 'question')}; the same command continues")
        raise


def _show(name: str, found: Sequence[Evaluated], against: EvalComparison | None, options: EvalOptions) -> None:
    """Print the tables, or all of it as JSON."""
    first, *others = found
    compared = [EvalComparison(one.label, one.scores, tuple(shares(one.scores))) for one in others]
    if against is not None:
        theirs = zip(against.scores, first.scores, strict=True)
        graded = tuple(one.model_copy(update={"grade": ours.their_grade}) for one, ours in theirs)
        compared.append(replace(against, scores=graded) if against.reports else against)
    if options.output_format == "text":
        emit_page(evaluation_page(name, first, compared, options.grader or ""))
    else:
        emit_json(evaluation_facts(name, first, compared))


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


def _compared(folder: str | None, questions: Sequence[EvalQuestion]) -> EvalComparison | None:
    """Measure what the set is compared with.

    Raises:
        NotFoundError: The folder has none of the questions.
    """
    if folder is None:
        return None
    if is_evaluation(Path(folder).expanduser()):
        earlier = scores_in(Path(folder).expanduser(), questions)
        return EvalComparison(Path(folder).name, earlier, tuple(shares(earlier)))
    texts = read_reports(Path(folder).expanduser(), questions)
    scores = tuple(score_text(question, texts[question.id]) for question in questions)
    return EvalComparison(Path(folder).stem, scores, OF_TEXTS, texts)


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
