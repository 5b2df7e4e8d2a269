"""The place where parts are joined: start a run, resume it, follow it up.

Starting is resuming an empty journal: `start` makes the folder, and both go through `_work`.
"""

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from explorer.agents.budget import Budget
from explorer.documents.corpus.reading import InputFile, parsed_texts, read_inputs
from explorer.journal.control import Inbox
from explorer.journal.journal import Journal, Protection
from explorer.journal.listing import free_run_id, is_run, read_records
from explorer.journal.run_state import RunState
from explorer.observe.run_log import RunLog, log_closed, log_written
from explorer.reports.verify.claims import Verification
from explorer.run.collector import rare_collections
from explorer.run.extensions import installed_extensions
from explorer.run.finish import Conclusion
from explorer.run.hooks import RunHooks
from explorer.run.last_report import ReportGuard
from explorer.run.mcp_session import with_mcp_tools
from explorer.run.outcome import FurtherLink, HelperResult, further_links, helper_results
from explorer.run.planning import check_planning
from explorer.run.resources import RunResources, open_resources, reserve_for_report, shell_set_by
from explorer.run.resumed_settings import as_started, check_vendors, not_taken
from explorer.run.run_journal import RunJournal, SessionRecords
from explorer.run.session import INPUTS, RunSession
from explorer.run.session_context import SessionReasons, session_configured
from explorer.run.since import changes_path
from explorer.run.single_agent import AgentSession, LeanSession
from explorer.schema.errors import ConfigError, NotFoundError, StorageError, WaitingError
from explorer.schema.events import CarriedRun, RunStarted, SessionConfigured, Status
from explorer.schema.messages import Estimate, Frozen, JsonObject, Usage, repair_text
from explorer.schema.plan import PlanFacts
from explorer.schema.reasons import EndCause
from explorer.schema.settings import Settings
from explorer.schema.version import __version__
from explorer.text.frontmatter import without_frontmatter
from explorer.text.sanitize import Redactor
from explorer.workspace.safe_open import FOLDER_MODE, make_private_folder, remove_tree, write_private
from explorer.workspace.user_key import open_key
from explorer.workspace.workspace import Workspace, report_path

MAX_QUESTION_CHARS = 200_000


class RunResult(Frozen):
    """The result of a session of a run."""

    run_id: str
    folder: Path
    status: Status
    reason: str
    """Why it is not complete, for people; empty when it is."""
    cause: EndCause = EndCause.OTHER
    """The reason as a code, for programs."""
    report: Path | None
    report_text: str
    usage: Usage
    cost_usd: float | None
    """None when any turn's price is not known."""
    estimated: Estimate = Estimate()
    """What of usage and cost is estimated."""
    steps: int
    agents: int
    sources: int
    citations: int
    """Cited sentences of the report; of the answer, where there is one."""
    seconds: float
    verdicts: dict[str, int] = Field(default_factory=dict[str, int])
    """The cited sentences by verdict; the parts sum to `citations`."""
    uncited: int = 0
    """Sentences with a quote or a figure and no citation; not counted in `citations`."""
    answer: str = ""
    """The words that answer a follow-up, with their references; empty when the report is the answer."""
    words: str = ""
    """What the model said instead of a report, where it wrote none."""
    further_links: tuple[FurtherLink, ...] = ()
    """Stored sources that the orchestrator recommends, best first."""
    helpers: tuple[HelperResult, ...] = ()
    """What each helper did, in the order in which they were started."""
    changes: Path | None = None
    """What changed since the earlier run, when one was named."""
    plan: PlanFacts | None = None
    """The plan, and how far each sub-question is; None: there is none."""
    answer_fields: JsonObject | None = None
    """The answer in the form that the program asked for; None: it asked for none, or the run ended before."""

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows: the answer to a follow-up, or the report."""
        return without_frontmatter(self.answer or self.report_text)


async def start(question: str, settings: Settings, hooks: RunHooks | None = None) -> RunResult:
    """Turn a question into a run and take it to its end.

    Raises:
        ConfigError: The question, a setting or a role cannot be used; nothing was started.
        ModelError: The provider is down or refuses; the run can be resumed.
        StorageError: The disk refused; what was acknowledged is safe.
    """
    hooks = hooks or RunHooks()
    question = checked_question(question)
    if hooks.answer_form is not None or hooks.single_agent is not None:
        # What a program asks for is more than the forms of lean mode have.
        settings = settings.model_copy(update={"lean": "off"})
    with rare_collections():
        return await _start(question, settings, hooks)


async def _start(question: str, settings: Settings, hooks: RunHooks) -> RunResult:
    inputs = read_inputs(settings.files, hooks.files)
    run_id = hooks.run_id or free_run_id(settings.workspace, question, hooks.now())
    async with (
        open_resources(settings, hooks.tools, hooks.client, hooks.retry_settings, hooks.progress) as opened,
        with_mcp_tools(opened, {}) as resources,
    ):
        check_planning(resources)
        texts = await parsed_texts(inputs, resources.connectors.parser)
        with _new_folder(settings.workspace, run_id) as folder:
            _keep_inputs(folder, inputs, texts)
            with _opened(folder, settings, hooks) as journal:
                begun = RunStarted(
                    run_id=run_id,
                    question=question,
                    engine=__version__,
                    settings=settings.public(),
                    single_agent=hooks.single_agent,
                )
                await journal.record(begun)
                return await _work(folder, journal, resources, hooks, Asked("", settings))


async def resume(folder: Path, settings: Settings, message: str = "", hooks: RunHooks | None = None) -> RunResult:
    """Resume an unfinished run, or ask a finished one something further.

    The settings that the run was started with apply, unless they are set explicitly now. Of a run that this user is not
    known to have started, only those apply that grant nothing (`run/resumed_settings.py`).

    Raises:
        ConfigError: The run is complete and there is no message.
        NotFoundError: The folder is not a run.
        RunLockedError: Another process works on it.
    """
    hooks = hooks or RunHooks()
    if not is_run(folder):
        raise NotFoundError(f"{folder} is not a run: it has no journal", hint="explorer runs")
    with rare_collections(), _opened(folder, settings, hooks) as journal:
        resumed = _settings_to_resume(folder, settings, message, journal)
        if hooks.client is None:
            check_vendors(resumed, journal.run_state)
        if journal.records.carried:
            # Whoever packed the folder may have left orders in it, too.
            Inbox(folder / ".explorer").drop_all()
        recorded = {} if journal.records.carried else journal.run_state.mcp
        async with (
            open_resources(resumed, hooks.tools, hooks.client, hooks.retry_settings, hooks.progress) as opened,
            with_mcp_tools(opened, recorded) as resources,
        ):
            return await _work(folder, journal, resources, hooks, Asked(message.strip(), settings))


@contextmanager
def _opened(folder: Path, settings: Settings, hooks: RunHooks) -> Generator[RunJournal]:
    """Open a run's journal for this process, and read it: once for all that need it."""
    further = (*hooks.tools, *installed_extensions().installed_tools)
    records = SessionRecords({tool.name for tool in further})
    observers = [records.see, RunLog().observe, *([hooks.observe] if hooks.observe else [])]
    protection = Protection(Redactor(settings.secret_texts()), open_key(settings.state_dir), hooks.store)
    journal = Journal.open(folder / ".explorer", hooks.now, observers, hooks.on_checkpoint, protection)
    try:
        yield RunJournal(journal, folder, records, hooks.catch_up)
    finally:
        journal.close()
        log_closed(folder.name)


def _settings_to_resume(folder: Path, settings: Settings, message: str, journal: RunJournal) -> Settings:
    run_state = journal.run_state
    if run_state.started is None:
        raise ConfigError(f"run {folder.name} was never started", hint='ask again: explorer "your question"')
    if run_state.finished is not None and run_state.finished.status is Status.COMPLETE and not message.strip():
        raise ConfigError(
            f"run {folder.name} is complete", hint=f'ask it something further: explorer resume {folder.name} "..."'
        )
    return as_started(settings, run_state, is_own=not journal.records.carried)


def checked_question(question: str) -> str:
    """Return the question without spaces around it, unless it is empty or too long."""
    if not question.strip():
        raise ConfigError("the question is empty", hint='explorer "what is notable on Hacker News today"')
    if len(question) > MAX_QUESTION_CHARS:
        raise ConfigError(
            f"the question has {len(question)} characters; the limit is {MAX_QUESTION_CHARS}",
            hint='put long text into a file: explorer --file notes.txt "your question about it"',
        )
    return repair_text(question.strip())


def _keep_inputs(folder: Path, inputs: Iterable[InputFile], texts: Mapping[str, str]) -> None:
    """Write the user's files into `inputs/`: texts, and next to the text of other kinds the file as it was given."""
    for name, text in texts.items():
        Workspace(folder).write_own(f"{INPUTS}/{name}", text)
    for one in inputs:
        if one.is_parsed:
            write_private(folder / INPUTS / one.name, one.body)


@contextmanager
def _new_folder(workspace: Path, run_id: str) -> Generator[Path]:
    """Make a run's folder; after an error it is removed again if nothing of the run is on record in it.

    Raises:
        ConfigError: It is there already, or cannot be made.
    """
    folder = workspace / run_id
    try:
        make_private_folder(workspace)
        folder.mkdir(FOLDER_MODE)
        make_private_folder(folder / ".explorer")
    except OSError as error:
        if os.path.lexists(folder):
            raise ConfigError(f"{folder} is there already", hint=f"explorer resume {run_id}") from error
        raise ConfigError(
            f"cannot write in {workspace}: {error.strerror}", hint="choose another folder: --workspace DIR"
        ) from error
    try:
        yield folder.resolve()
    except BaseException:
        with suppress(OSError, StorageError):
            if not (is_run(folder) and read_records(folder)):
                remove_tree(folder)
        raise


@dataclass(frozen=True)
class Asked:
    """What a session is asked to do."""

    message: str
    """The follow-up, or a message to a run that is not finished; empty: to take the run to its end."""
    settings: Settings
    """Settings given now, before anything of an earlier session is added."""


async def _work(folder: Path, journal: RunJournal, resources: RunResources, hooks: RunHooks, asked: Asked) -> RunResult:
    """Take one session of a run from its open journal to its end."""
    started = hooks.clock()
    settings, run_state, records = resources.settings, journal.run_state, journal.records
    resources = replace(resources, sandbox=shell_set_by(resources.sandbox, settings, hooks.origins))
    workspace = Workspace(folder)
    reasons = SessionReasons(asked.settings, hooks.origins, is_own=not records.carried)
    configured = session_configured(resources, run_state, reasons)
    await journal.record(_with_carried(configured, journal, settings))
    for listed in resources.mcp:
        if run_state.mcp.get(listed.server) != listed:
            await journal.record(listed)
    budget = Budget(settings.limits, hooks.clock, reserve_for_report(settings, resources.roles, resources.choice))
    hooks.stop.attach(budget)
    is_single = run_state.started is not None and run_state.started.single_agent is not None
    kind = AgentSession if is_single else LeanSession if resources.lean else RunSession
    session = kind(workspace, resources, budget, journal, hooks)
    message = await session.planner.take_decision(hooks.plan_decision, asked.message)
    way_on = hooks.way_on.format(run=folder.name)
    async with ReportGuard(journal.state_on_disk, workspace, settings.language, lambda: hooks.stop.cut, way_on):
        try:
            conclusion = await session.work(message)
        except WaitingError as waiting:
            nothing = Conclusion(Status.WAITING, waiting.message, "", Verification(claims=()))
            return _result_of(folder, run_state, nothing, round(hooks.clock() - started, 3))
    log_written(report_path(folder), len(conclusion.verification.claims))
    result = _result_of(folder, run_state, conclusion, round(hooks.clock() - started, 3))
    changes = changes_path(folder, run_state) if settings.since_run else None
    fields = records.answer if hooks.answer_form else None
    return result.model_copy(update={"changes": changes, "answer_fields": fields})


def _with_carried(configured: SessionConfigured, journal: RunJournal, settings: Settings) -> SessionConfigured:
    """Return a session's record, which says of a carried run what of its journal was not taken."""
    started = journal.run_state.started
    if not journal.records.carried or started is None:
        return configured
    carried = CarriedRun(not_taken=not_taken(started.settings, settings), no_key=open_key(settings.state_dir).problem)
    return configured.model_copy(update={"carried": carried})


def _result_of(folder: Path, run_state: RunState, conclusion: Conclusion, seconds: float) -> RunResult:
    return RunResult(
        run_id=folder.name,
        folder=folder,
        status=conclusion.status,
        reason=conclusion.reason,
        cause=conclusion.cause,
        report=report_path(folder),
        report_text=conclusion.report,
        usage=run_state.usage,
        cost_usd=run_state.cost_usd,
        estimated=run_state.estimated,
        steps=run_state.steps,
        agents=len(run_state.agents),
        sources=len(run_state.sources),
        citations=len(conclusion.verification.claims),
        verdicts=conclusion.verification.verdicts,
        uncited=len(conclusion.verification.uncited),
        answer=conclusion.answer,
        words=conclusion.words,
        seconds=seconds,
        further_links=further_links(run_state),
        helpers=helper_results(run_state),
        plan=run_state.plan.summary(),
    )
