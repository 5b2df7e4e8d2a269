"""One life of a run: the team is made, the orchestrator led from wherever it was, and the end written down."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from explorer.agents.budget import Amount, Budget
from explorer.agents.calls import Record
from explorer.agents.pacing import reviewed
from explorer.agents.prompts import report_writers
from explorer.agents.stopping import REPORT_S, repeating
from explorer.agents.team import Team, TeamParts
from explorer.documents.corpus.inputs import input_drafts
from explorer.journal.fold import Fold
from explorer.journal.history import AgentState
from explorer.journal.inbox import Inbox
from explorer.llm.outage import FailedAttempt
from explorer.llm.retry import WaitLimits
from explorer.observe.provenance import write_files_index
from explorer.reports.library import Library
from explorer.reports.verify.files import text_reader
from explorer.reports.verify.judge import Judgements
from explorer.run.conclusion import (
    Conclusion,
    Wanted,
    checked_draft,
    conclude,
    draft_problem,
    missing_report,
    restore_draft,
)
from explorer.run.equipment import Equipment
from explorer.run.judging import Purse, ask_judge
from explorer.run.last_report import record_moved
from explorer.run.shell_room import ShellRoom, open_shell
from explorer.run.since_run import SINCE_FILES, earlier_addresses, words_on_earlier, write_changes
from explorer.schema.errors import ConfigError
from explorer.schema.events import (
    ORCHESTRATOR,
    AgentFinished,
    CitationsJudged,
    RunFinished,
    SessionConfigured,
    Source,
    Status,
    Steered,
    TurnFailed,
)
from explorer.schema.events import Record as RunRecord
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool
from explorer.sources.http.seen_links import SeenLinks
from explorer.sources.since import zone_named
from explorer.tools.files import file_tools
from explorer.tools.finish import FinishTool
from explorer.tools.library import Desk, library_tools
from explorer.tools.past_runs import Past, SearchRunsTool
from explorer.tools.sources import ListSourcesTool, ReadSourceTool, WithRemarks
from explorer.workspace.evidence import Evidence, stored_at
from explorer.workspace.workspace import Workspace

GO_ON = "Go on where you stopped. Finish what is worth finishing, then the report."
TRY_AGAIN = (
    "No lookup reached a source before. Try them again now: what did not answer then may answer. Then revise the "
    "report, and finish."
)
LATE_WORDS = "The words above came while you were finishing. Take them into account, then finish again."
SAMPLE_LINE = "This run reads bundled, invented sample data."
INPUTS = "inputs"


@dataclass(frozen=True)
class Life:
    """What one life of a run works with."""

    workspace: Workspace
    settings: Settings
    now: Callable[[], datetime]
    clock: Callable[[], float]
    fold: Fold
    record: Record
    records: Sequence[RunRecord]
    """All of the run's records so far; grows as `record` is called."""

    @property
    def folder(self) -> Path:
        """The run's."""
        return self.workspace.folder

    async def lead(self, equipment: Equipment, budget: Budget, message: str) -> Conclusion:
        """Take the run to an end.

        Raises:
            ModelError: The provider is down or refuses; the run stays open, with a report of what there is.
            StorageError: The disk refused.
        """
        self._book(budget, message)
        workspace = self.workspace
        workspace.sweep()
        evidence = self._evidence(workspace)
        ended, cut = None, ""
        limit = asyncio.timeout(budget.seconds_left)
        try:
            async with (
                limit,
                _hurried(limit, budget),
                open_shell(equipment, workspace, self.fold, self.record, budget.stopping) as shell,
            ):
                team = self._team(equipment, budget, workspace, evidence, shell)
                with repeating(team.look_for_stop):
                    ended = await self._orchestrate(team, equipment, evidence, message)
                    while await team.has_late_words():
                        ended = await team.go_on(LATE_WORDS)
        except TimeoutError:
            if not limit.expired():
                raise
            cut = budget.winding_down if budget.stopping.is_asked else "time limit"
        judged = await self._judge(equipment, budget, workspace)
        wanted = Wanted(self.settings.language, judged)
        conclusion = conclude(self.fold, workspace, ended, cut or budget.winding_down, wanted)
        await record_moved(self.fold, workspace, self.record)
        self._account_for(workspace, conclusion)
        await self.record(RunFinished(status=conclusion.status, reason=conclusion.reason, answer=conclusion.answer))
        return conclusion

    async def _judge(self, equipment: Equipment, budget: Budget, workspace: Workspace) -> Judgements | None:
        """With `--judge`, a model's opinion of the citations; none once the run winds down, or a second time."""
        events = (record.event for record in reversed(self.records))
        latest = next((event for event in events if not isinstance(event, SessionConfigured)), None)
        was_asked = isinstance(latest, CitationsJudged)
        if not self.settings.judge or budget.winding_down or was_asked:
            return None
        verification, text_of = checked_draft(self.fold, workspace), text_reader(workspace)
        if not verification.claims:
            return None
        purse = Purse(budget.root, self.record, self._failed)
        judged, event = await ask_judge(equipment, purse, verification, text_of)
        await self.record(event)
        return judged

    def _account_for(self, workspace: Workspace, conclusion: Conclusion) -> None:
        """Write down where each file comes from, and what changed since an earlier run."""
        # Appends that shared a sync come back in any order.
        write_files_index(sorted(self.records, key=lambda record: record.seq), workspace)
        if self.settings.since_run:
            started = self.records[0].at if self.records else None
            write_changes(self.folder, self.settings.since_run, self.fold, started, str(conclusion.status))

    def _book(self, budget: Budget, message: str) -> None:
        """Count what earlier lives used of the limits; a follow-up to a finished run has them anew."""
        state = self.fold.agents.get(ORCHESTRATOR)
        if message and state is not None and state.finished is not None:
            return
        before = self.fold.paid_before
        budget.calls.made = self.fold.calls - before.calls
        budget.exploration.book(
            Amount(
                self.fold.steps - before.steps,
                self.fold.usage.total_tokens - before.tokens,
                self.fold.known_cost_usd - before.cost_usd,
            )
        )

    def _evidence(self, workspace: Workspace) -> Evidence:
        async def write(path: str, text: str) -> None:
            await asyncio.to_thread(workspace.write_own, path, text)

        async def read(path: str) -> str:
            return await asyncio.to_thread(workspace.read_text, path)

        return Evidence(self.record, write, self.now, self.fold.sources.values(), read)

    def _team(
        self, equipment: Equipment, budget: Budget, workspace: Workspace, evidence: Evidence, shell: ShellRoom
    ) -> Team:
        def sources() -> Mapping[str, Source]:
            return self.fold.sources

        def problem(*, is_empty: bool = False) -> str:
            return draft_problem(self.fold, workspace, has_time=not budget.winding_down, is_empty=is_empty)

        own = [
            *file_tools(workspace),
            *shell.tools,
            ListSourcesTool(workspace, sources),
            ReadSourceTool(workspace, sources),
            *self._earlier_work(sources, evidence),
            FinishTool(lambda is_empty: problem(is_empty=is_empty)),
        ]
        seen = self._seen_links(equipment, workspace)
        found = equipment.tools(evidence.store, seen.check)
        for_report = {ORCHESTRATOR, *report_writers(equipment.roles)}
        equipment.clients.expect(self.fold.answered_by)
        outside = {name: WithRemarks(tool, sources) for name, tool in found.items()}
        return Team(
            TeamParts(
                roles=equipment.roles,
                tools={**{tool.name: tool for tool in own}, **outside},
                absent=equipment.absent,
                model_of=lambda role: equipment.model_of(
                    role, self._failed, self._waits(budget, is_for_report=role in for_report)
                ),
                workspace=workspace,
                fold=self.fold,
                record=self.record,
                budget=budget,
                inbox=Inbox(self.folder / ".explorer"),
                news=shell.news,
                jobs=shell.lines,
                clock=self.clock,
                max_output_tokens=self.settings.max_output_tokens,
                review=lambda state, end: reviewed(state, end, lambda: missing_report(workspace), problem),
            )
        )

    def _seen_links(self, equipment: Equipment, workspace: Workspace) -> SeenLinks:
        """The addresses that may be read: those of the question, of sources, and of the run this one follows."""
        others = [tool.name for tool in equipment.extra_tools]
        seen = SeenLinks(self.records, lambda one: workspace.read_text(stored_at(one)), others)
        for url in earlier_addresses(self.folder, self.settings.since_run):
            seen.saw_url(url)
        return seen

    def _earlier_work(self, sources: Callable[[], Mapping[str, Source]], evidence: Evidence) -> list[Tool]:
        """The tools over what is there before this run: the library of reports, and other runs."""
        zone = zone_named(self.settings.timezone)
        library = Library(self.settings.reports_dir, lambda: self.now().astimezone(zone))
        run = self.folder.name
        search = SearchRunsTool(Past(self.folder.parent, run, library), evidence.store)
        return [*library_tools(Desk(library, run, sources, evidence.store)), search]

    def _waits(self, budget: Budget, *, is_for_report: bool) -> WaitLimits:
        """How long a role's agents wait for their model: helpers no longer than there is exploring."""
        return WaitLimits(
            lambda: budget.seconds_left,
            self.settings.limits.max_outage_s,
            lambda: None if is_for_report else budget.exploration_seconds_left,
        )

    async def _failed(self, failed: FailedAttempt) -> None:
        waiting_s, error = failed.waiting_s, failed.error
        await self.record(
            TurnFailed(
                agent=failed.request.agent,
                fault=error.fault,
                message=error.message,
                attempt=failed.number,
                waits_s=failed.waits_s,
                waiting_since=None if waiting_s is None else self.now() - timedelta(seconds=waiting_s),
                is_billed=error.is_billed,
            )
        )

    async def _orchestrate(self, team: Team, equipment: Equipment, evidence: Evidence, message: str) -> AgentFinished:
        state = self.fold.agents.get(ORCHESTRATOR)
        if state is not None and state.finished is not None and (message or self._ended_early(state)):
            await team.ask_again(message or self._go_on_words(), renews_limits=bool(message))
        elif state is not None and message:
            await self.record(Steered(agent=ORCHESTRATOR, text=message))
        # Only now: until the run is open again on disk, a finished one keeps its report.
        restore_draft(self.fold, self.workspace)
        return await team.lead(state.task if state is not None else await self._first_words(equipment, evidence))

    def _go_on_words(self) -> str:
        over = self.fold.finished
        return TRY_AGAIN if over is not None and over.status is Status.SOURCES_UNAVAILABLE else GO_ON

    def _ended_early(self, state: AgentState) -> bool:
        over = self.fold.finished
        return over is not None and over.status is not Status.COMPLETE and state.finished is not None

    async def _first_words(self, equipment: Equipment, evidence: Evidence) -> str:
        """What the orchestrator is told at the start."""
        if self.fold.started is None:
            raise ConfigError(f"{self.folder.name} was never started", hint='ask again: explorer "your question"')
        workspace = self.workspace
        workspace.write_own("question.txt", self.fold.started.question)
        lines = [
            f"Question: {self.fold.started.question}",
            "",
            f"Run {self.fold.started.run_id}, started {self.now():%Y-%m-%d %H:%M} UTC.",
        ]
        if self.settings.language:
            lines.append(f"Language of the report: {self.settings.language}")
        since = self.settings.since_run
        earlier = await words_on_earlier(self.folder, since, workspace, evidence.store) if since else []
        inputs = await self._inputs(workspace, evidence)
        if inputs:
            lines.append(f"Files from the user: {', '.join(inputs)}")
        if equipment.outside.corpus is not None:
            lines.append(await equipment.outside.corpus.line())
        lines += earlier
        if self.settings.is_sample:
            lines.append(SAMPLE_LINE)
        return "\n".join(lines)

    async def _inputs(self, workspace: Workspace, evidence: Evidence) -> list[str]:
        """The user's files, stored as sources, one mention each."""
        if not (self.folder / INPUTS).is_dir():
            return []
        files = {info.path: info for info in workspace.files(INPUTS) if info.path not in SINCE_FILES}
        drafts = input_drafts(files, workspace.read_text)
        sources = await evidence.store([*drafts.values()])
        return [f"{path} [{one.id}] ({files[path].lines} lines)" for path, one in zip(drafts, sources, strict=True)]


@asynccontextmanager
async def _hurried(limit: asyncio.Timeout, budget: Budget) -> AsyncGenerator[None]:
    """While inside, bring the end forward when the user stops the run: the report has half a minute."""
    loop = asyncio.get_running_loop()

    def hurry() -> None:
        latest = limit.when()
        limit.reschedule(min(loop.time() + REPORT_S, float("inf") if latest is None else latest))

    if budget.stopping.is_asked:
        hurry()
    with budget.stopping.when_asked(hurry):
        yield
