"""A set of questions, each a run of its own: several at once, within one limit of money, and resumable at any moment.

The runs are all the state there is: a question whose run has ended is not asked again, and an unfinished one is
resumed. Figures are computed from the runs, so a change of the scoring needs no new runs.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock, Timeout

from explorer.evaluation.grading import Grade, GradingPlan, ask_grader, grade_in, grading_folder
from explorer.evaluation.news_days import served_day
from explorer.evaluation.questions import EvalQuestion, write_documents
from explorer.evaluation.scoring import Score, score_run
from explorer.journal.listing import is_run, read_records, run_folders
from explorer.journal.run_state import RunState
from explorer.observe.costs import spending_of
from explorer.run.hooks import RunHooks
from explorer.run.resources import in_force
from explorer.run.run import resume, start
from explorer.run.team import choose_models, load_roles
from explorer.schema.errors import ConfigError, CredentialsError, ExplorerError, RunLockedError
from explorer.schema.settings import Settings
from explorer.text.frontmatter import without_frontmatter
from explorer.text.sanitize import single_line
from explorer.workspace.access import REPORT
from explorer.workspace.safe_open import FILE_MODE
from explorer.workspace.workspace import Workspace

DEFAULT_TOTAL_USD = 20.0
"""The limit of a whole set where none is given, in US dollars."""
DEFAULT_PARALLEL = 2
LEAST_SHARE = 0.2
"""A question is not asked with less than this share of its own limit: it would only end as partial."""
MAX_ERROR_CHARS = 300
SET_FILE = "set.json"
LOCK_FILE = "lock"
RUNS = "runs"
FOR_ALL = frozenset({ConfigError("").exit_code, CredentialsError("").exit_code})
"""Exit codes of errors that every question would meet: a wrong setting, a key that is refused."""
NO_MONEY = "not asked: the rest of the limit of money is too small for it"


@dataclass(frozen=True)
class EvalPlan:
    """How a set is run."""

    settings: Settings
    folder: Path
    """The folder of its runs; the same folder resumes it."""
    parallel: int = DEFAULT_PARALLEL
    max_total_usd: float | None = None
    """US dollars for all runs of the folder together, those of earlier commands, too.

    None: 20 where prices are known. Infinite: only each question's limit.
    """
    hooks: Callable[[], RunHooks] = RunHooks
    """Makes the hooks of each run."""
    grading: GradingPlan | None = None
    """How reports on questions with criteria are graded; None: they are not."""
    others: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reports of another system by question; they are graded, too."""
    parts: int = 1
    """How many evaluations share the money, each an equal part."""


class _Purse:
    """The money of a whole set: what a question may cost is reserved before it is asked."""

    def __init__(self, usd: float) -> None:
        self._left_usd = usd
        self._running = 0
        self._changed = asyncio.Condition()

    async def reserve(self, most_usd: float) -> float | None:
        """Take what a question may cost, or what is left; wait while running questions may still give enough back.

        None: it is too little, and nobody is left to give anything back.
        """
        async with self._changed:
            while (taken := min(most_usd, self._left_usd)) < most_usd * LEAST_SHARE:
                if not self._running:
                    return None
                await self._changed.wait()
            self._left_usd -= taken
            self._running += 1
            return taken

    async def give_back(self, unused_usd: float) -> None:
        """Return the unused part of a reservation."""
        async with self._changed:
            self._left_usd += max(0.0, unused_usd)
            self._running -= 1
            self._changed.notify_all()


@dataclass
class _Work:
    plan: EvalPlan
    most_usd: float | None
    """What one question may cost; None where prices are not known or nothing costs anything."""
    most_grading_usd: float | None
    """What one grading may cost, likewise."""
    purse: _Purse
    on_score: Callable[[Score], None]
    scores: dict[str, Score] = field(default_factory=dict[str, Score])
    fatal: ExplorerError | None = None
    """An error that every further question would meet, too."""

    async def answer(self, question: EvalQuestion) -> None:
        """Ask a question, or resume its run, or only measure what is there."""
        if self.fatal is not None:
            return
        folder = self.plan.folder / RUNS / question.id
        try:
            error = "" if _has_ended(folder) else await self._run(question, folder)
            score = await asyncio.to_thread(_measured, question, folder)
        except ExplorerError as damaged:
            error, score = single_line(damaged.message, MAX_ERROR_CHARS), Score(id=question.id, status="")
        score = score.model_copy(update={"error": error})
        try:
            score = await self._graded(question, score) if score.status else score
        except ExplorerError as damaged:
            score = score.model_copy(update={"error": error or single_line(damaged.message, MAX_ERROR_CHARS)})
        self.scores[question.id] = score
        self.on_score(score)

    async def _run(self, question: EvalQuestion, folder: Path) -> str:
        """Return why the run did not end; empty when it did."""
        return await self._paid(folder, self.most_usd, lambda most: self._explore(question, folder, most))

    async def _paid(
        self, folder: Path, most_usd: float | None, explore: Callable[[float | None], Awaitable[None]]
    ) -> str:
        """Do a run, or its rest, within what is left of the money; return why it did not end, empty when it did."""
        before = _cost_of(folder)
        most = None if most_usd is None else await self.purse.reserve(max(0.0, most_usd - before))
        if most_usd is not None and most is None:
            return NO_MONEY
        try:
            await explore(None if most is None else most + before)
        except ExplorerError as error:
            if error.exit_code in FOR_ALL and not isinstance(error, RunLockedError):
                self.fatal = error
            return single_line(error.message, MAX_ERROR_CHARS)
        finally:
            if most is not None:
                await self.purse.give_back(_unused(folder, most + before))
        return ""

    async def _graded(self, question: EvalQuestion, score: Score) -> Score:
        """Grade the reports on a question; those that are graded already stay as they are."""
        if self.plan.grading is None or question.rubric is None:
            return score
        mine = _report_of(self.plan.folder / RUNS / question.id) if score.has_report else ""
        grades: list[Grade | None] = []
        for name, report in ((question.id, mine), (f"{question.id}-theirs", self.plan.others.get(question.id, ""))):
            grade, error = await self._grade(question, name, report) if report.strip() else (None, "")
            score = score.model_copy(update={"error": score.error or error})
            grades.append(grade)
        return score.model_copy(update={"grade": grades[0], "their_grade": grades[1]})

    async def _grade(self, question: EvalQuestion, name: str, report: str) -> tuple[Grade | None, str]:
        plan, rubric = self.plan.grading, question.rubric
        assert plan is not None
        assert rubric is not None
        folder = grading_folder(plan, name, report)
        error = ""
        if not _has_ended(folder):

            async def ask(most_usd: float | None) -> None:
                within = replace(plan, settings=_with_limit(plan.settings, most_usd))
                await ask_grader(within, question.question, rubric, report, folder)

            error = await self._paid(folder, self.most_grading_usd, ask)
        grade = grade_in(folder, rubric, report)
        missing = f"the grader gave no grades; to ask again, delete {folder}"
        return grade, error or ("" if grade else missing)

    async def _explore(self, question: EvalQuestion, folder: Path, max_cost_usd: float | None) -> None:
        async with served_day(_settings_of(question, self.plan, max_cost_usd), question.day) as settings:
            if is_run(folder):
                await resume(folder, settings, "", self.plan.hooks())
                return
            await start(question.question, settings, replace(self.plan.hooks(), run_id=question.id))


async def evaluate(
    questions: Sequence[EvalQuestion], plan: EvalPlan, on_score: Callable[[Score], None] = lambda _score: None
) -> tuple[Score, ...]:
    """Ask all questions, and measure their runs.

    Args:
        questions: The set.
        plan: How it is run.
        on_score: Called with each score as soon as its run has ended.

    Returns:
        A score for each question, in the set's order; those not asked have an `error`.

    Raises:
        ConfigError: The folder belongs to another set, or a setting cannot be used.
        CredentialsError: A key is missing or refused.
        RunLockedError: Another process works on the set.
    """
    most_usd = await _most_usd(plan.settings)
    most_grading_usd = None if plan.grading is None else await _most_usd(plan.grading.settings)
    if most_usd is None and most_grading_usd is None and plan.max_total_usd is not None:
        hint = "set EXPLORER_PRICE if the price is not known, and a limit for each question with --max-cost"
        raise ConfigError("a limit of money for all questions needs one for each question", hint=hint)
    places = asyncio.Semaphore(plan.parallel)
    with _locked(plan.folder):
        _check_folder(questions, plan)
        total_usd = (DEFAULT_TOTAL_USD if plan.max_total_usd is None else plan.max_total_usd) / plan.parts
        spent_usd = _spent_usd(plan.folder / RUNS, most_usd or 0.0)
        if plan.grading is not None:
            spent_usd += _spent_usd(plan.grading.folder, most_grading_usd or 0.0)
        work = _Work(plan, most_usd, most_grading_usd, _Purse(max(0.0, total_usd - spent_usd)), on_score)

        async def one(question: EvalQuestion) -> None:
            async with places:
                await work.answer(question)

        async with asyncio.TaskGroup() as group:
            for question in questions:
                group.create_task(one(question))
    if work.fatal is not None:
        raise work.fatal
    return tuple(work.scores[question.id] for question in questions)


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Lock a set's folder: what two processes spend at once, neither could count.

    Raises:
        RunLockedError: Another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / LOCK_FILE, blocking=False, mode=FILE_MODE):
            yield
    except Timeout as error:
        raise RunLockedError(f"another process works on {folder}", hint="wait for it, or: --out DIR") from error


async def _most_usd(settings: Settings) -> float | None:
    """Return what one run may cost in US dollars; None where prices are not known, or nothing costs anything."""
    limited, _ = in_force(settings, await choose_models(settings, load_roles(settings)))
    return limited.limits.max_cost_usd


def _settings_of(question: EvalQuestion, plan: EvalPlan, max_cost_usd: float | None) -> Settings:
    """Return the settings of one run: its own folder of documents, and a library of its own.

    In a common library, the report on one question would answer the next.
    """
    update: dict[str, object] = {
        "workspace": plan.folder / RUNS,
        "reports_dir": plan.folder / "libraries" / question.id,
    }
    if question.documents:
        documents = plan.folder / "documents" / question.id
        write_documents(question, documents)
        update["corpus"] = documents.absolute()
    return _with_limit(plan.settings.model_copy(update=update), max_cost_usd)


def _with_limit(settings: Settings, max_cost_usd: float | None) -> Settings:
    if max_cost_usd is None:
        return settings
    limits = settings.limits.model_copy(update={"max_cost_usd": max_cost_usd})
    return settings.model_copy(update={"limits": limits})


def _report_of(folder: Path) -> str:
    """Return a run's report as its reader has it."""
    return without_frontmatter(Workspace(folder).read_text(REPORT))


def _check_folder(questions: Sequence[EvalQuestion], plan: EvalPlan) -> None:
    """Check that the folder is of this set, or new.

    Raises:
        ConfigError: Another question has the id of one of these there.
    """
    path = plan.folder / SET_FILE
    try:
        known: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError as error:
        raise ConfigError(f"{path} is damaged", hint="give another folder: --out DIR") from error
    for question in questions:
        if known.get(question.id, question.question) != question.question:
            message = f"{plan.folder} has another question with the id {question.id!r}"
            raise ConfigError(message, hint="give another folder: --out DIR")
    known |= {question.id: question.question for question in questions}
    path.write_text(json.dumps(known, ensure_ascii=False, indent=1), encoding="utf-8")


def is_evaluation(folder: Path) -> bool:
    """Return whether a folder has the runs of a set."""
    return (folder / SET_FILE).is_file()


def scores_in(folder: Path, questions: Sequence[EvalQuestion]) -> tuple[Score, ...]:
    """Measure the runs of another evaluation, without asking anything.

    Args:
        folder: Its folder.
        questions: The set; a question without a run there has a score without a status.

    Returns:
        A score for each question, in the set's order.
    """
    return tuple(_measured(question, folder / RUNS / question.id) for question in questions)


def _measured(question: EvalQuestion, folder: Path) -> Score:
    return score_run(question, folder) if is_run(folder) else Score(id=question.id, status="")


def _has_ended(folder: Path) -> bool:
    return is_run(folder) and RunState.of_records(read_records(folder)).finished is not None


def _unused(folder: Path, most_usd: float) -> float:
    """Return what a run has left of its money; of a run that cannot be read, nothing."""
    try:
        return most_usd - _cost_of(folder)
    except ExplorerError:
        return 0.0


def _spent_usd(folder: Path, most_usd: float) -> float:
    """Return what the runs in a folder have cost; one that cannot be read counts as the most that it could."""

    def cost(run: Path) -> float:
        try:
            return _cost_of(run)
        except ExplorerError:
            return most_usd

    return sum(cost(run) for run in run_folders(folder))


def _cost_of(folder: Path) -> float:
    """Return what a question has cost so far, in US dollars; what is not known counts as nothing."""
    return (spending_of(read_records(folder)).total.cost_usd or 0.0) if is_run(folder) else 0.0
