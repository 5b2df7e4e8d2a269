"""One session of a run: the team is made, the orchestrator continued from where it was, and the end recorded."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from explorer.agents.approvals import Approvals
from explorer.agents.budget import Amount, Budget
from explorer.agents.context_block import RunFacts
from explorer.agents.decisions import Decision
from explorer.agents.policies import reviewed
from explorer.agents.roles import Role, leading_role, report_writers, with_tools
from explorer.agents.run_rules import TeamContext
from explorer.agents.subagents import Team
from explorer.agents.user_stop import REPORT_S, repeating
from explorer.documents.corpus.reading import input_drafts
from explorer.journal.agent_state import AgentState
from explorer.journal.control import Inbox
from explorer.observe.provenance import write_files_index
from explorer.reports.verify.claims import Judgements
from explorer.run.connectors import left_out
from explorer.run.finish import (
    Conclusion,
    ReportContext,
    ReportOptions,
    checked_draft,
    created_at,
    draft_problem,
    finish_run,
    missing_report,
    record_moved,
    restore_draft,
    was_shown,
)
from explorer.run.judge import JudgeAccount, ask_judge
from explorer.run.known_stories import LibraryBefore, repeated_stories, repetition_problem, without_repeated
from explorer.run.resumed_settings import pending_effects
from explorer.run.run_facts import QUICK, run_facts
from explorer.run.session_context import SessionContext
from explorer.run.shell_session import ShellSession, open_shell
from explorer.run.since import SINCE_FILES, story_section, words_on_earlier, write_changes
from explorer.schema.approvals import ApprovalRules
from explorer.schema.errors import ConfigError, ToolError
from explorer.schema.events import (
    ORCHESTRATOR,
    AgentFinished,
    CitationsJudged,
    Status,
    Steered,
)
from explorer.schema.reasons import EndCause, EndReason, ErrorCode, NoteReason, limit_reached
from explorer.schema.tool import Tool
from explorer.text.rendering import ModelText, by_user, own, render
from explorer.text.words import phrases_in
from explorer.tools.finish import AnswerTool, FinishTool
from explorer.workspace.access import REPORT

INPUTS = "inputs"


@dataclass(frozen=True)
class RunSession(SessionContext):
    """Takes a run to its end: from its start, or from where an earlier session left it."""

    @cached_property
    def report_context(self) -> ReportContext:
        """The run, for what writes and checks its report: sources stay ready from one check to the next."""
        return ReportContext(self.run_state, self.workspace)

    async def work(self, message: str) -> Conclusion:
        """Take the run to an end.

        Args:
            message: The follow-up, or a message to a run that is not finished; empty: none.

        Raises:
            ModelError: The provider is down or refuses; the run stays open, with a report of what there is.
            StorageError: The disk refused.
        """
        budget = self.budget
        self._restore_spending(message)
        self.workspace.sweep()
        ended, cut = None, EndReason()
        limit = asyncio.timeout(budget.seconds_left)
        try:
            async with (
                limit,
                _hurried(limit, budget),
                open_shell(self.resources, self.workspace, self.run_state, self.record, budget.stopping) as shell,
            ):
                team = self._team(shell, await self.facts())
                await self._refuse_pending(team)
                with repeating(team.rules.check_for_stop):
                    ended = await self._orchestrate(team, message)
                    while await team.rules.has_unanswered_message():
                        ended = await team.run_again(NoteReason.LATE_WORDS)
        except TimeoutError:
            if not limit.expired():
                raise
            cut = budget.early_end if budget.stopping.is_asked else limit_reached(EndCause.TIME_LIMIT)
        conclusion = await self.conclude(ended, cut or budget.early_end)
        await self.record(conclusion.event())
        return conclusion

    async def conclude(self, ended: AgentFinished | None, cut: EndReason) -> Conclusion:
        """Write the report, and everything that belongs to it.

        Args:
            ended: The orchestrator's end; None when it was cut off.
            cut: Why it was cut off; false otherwise.
        """
        judged = await self._judge()
        since = story_section(self.folder, self.settings.since_run, self.run_state)
        report_options = ReportOptions(self.settings.language, judged, since, amend=self._without_repeated)
        conclusion = await finish_run(self.report_context, ended, cut, report_options)
        await record_moved(self.run_state, self.workspace, self.record)
        self._account_for(conclusion)
        return conclusion

    async def _judge(self) -> Judgements | None:
        """Ask for a model's opinion of the citations, with `--judge`; once, and not while the run winds down."""
        budget, was_asked = self.budget, isinstance(self.records.latest, CitationsJudged)
        if not self.settings.judge or budget.winding_down or was_asked:
            return None
        verification, text_of = await checked_draft(self.report_context), self.report_context.citations.text_of
        if not verification.claims:
            return None
        judge_account = JudgeAccount(budget.root, self.record, self.record_failed_attempt, lambda: budget.seconds_left)
        judged, event = await ask_judge(self.resources, judge_account, verification, text_of)
        await self.record(event)
        return judged

    def _account_for(self, conclusion: Conclusion) -> None:
        """Write down where each file comes from, and what changed since an earlier run."""
        write_files_index(self.records.origins, self.workspace)
        if self.settings.since_run:
            since, began = self.settings.since_run, self.records.first_at
            write_changes(self.folder, since, self.run_state, began, str(conclusion.status))

    def _restore_spending(self, message: str) -> None:
        """Count what earlier sessions used of the limits; a follow-up to a finished run has them anew."""
        state = self.run_state.lead
        if message and state is not None and state.finished is not None:
            return
        before = self.run_state.paid_before
        self.budget.calls.made = self.run_state.calls - before.calls
        # At least nothing, whatever a journal says: less, or no number at all, would be a way around the limits.
        self.budget.exploration.record_usage(
            Amount(
                self.run_state.steps - before.steps,
                max(0, self.run_state.usage.total_tokens - before.tokens),
                max(0.0, self.run_state.known_cost_usd - before.cost_usd),
            )
        )

    async def _refuse_pending(self, team: Team) -> None:
        """Answer the calls of a carried run that would have an effect outside its folder."""
        if self.records.carried:
            for refused in pending_effects(self.run_state, team.tools):
                await self.record(refused)

    def _team(self, shell: ShellSession, facts: RunFacts | None) -> Team:
        resources = self.resources
        for_report = {leading_role(resources.roles).name, *report_writers(resources.roles)}
        resources.clients.expect(self.run_state.answered_by)
        tools = self.all_tools([*shell.tools, *self.ending_tools()])
        return Team(
            TeamContext(
                roles=self.roles(),
                tools=tools,
                absent={**left_out(tools), **resources.absent},
                model_of=lambda role: resources.model_of(
                    role, self.record_failed_attempt, self.wait_limits(is_for_report=role in for_report)
                ),
                workspace=self.workspace,
                run_state=self.run_state,
                record=self.record,
                budget=self.budget,
                inbox=Inbox(self.folder / ".explorer"),
                notifications=shell.notifications,
                jobs=shell.job_lines,
                clock=self.hooks.clock,
                max_output_tokens=self.settings.max_output_tokens,
                store=self.store_for_tools,
                now=self.tool_clock,
                facts=facts,
                progress=self.hooks.progress,
                guard=self._approvals().guard,
                skills=resources.skills.listing,
                review=self._held_to_plan,
                refuse=self.planner.refuse,
                has_plan=bool(self.plan_tools),
                max_depth=self.settings.max_depth,
            )
        )

    def _approvals(self) -> Approvals:
        """Return what decides on calls by the user's rules."""
        rules = ApprovalRules.of(self.settings.approval_rules, self.settings.tightening_rules)
        return Approvals(rules, self.run_state, self.record, self.budget.stopping, self.hooks.approve)

    async def facts(self) -> RunFacts | None:
        """Return what is stated to all agents; None: nothing is."""
        return await run_facts(
            self.resources, self.run_state.session, self.tool_clock, self.past(QUICK), self.run_state.question
        )

    @property
    def tool_clock(self) -> Callable[[], datetime]:
        """The clock of the tools, which stands still on the sample day."""
        return self.resources.connectors.now if self.settings.is_sample else self.hooks.now

    def roles(self) -> Mapping[str, Role]:
        """Return what the agents may be."""
        roles = self.resources.roles
        further = [tool.name for tool in self.plan_tools]
        further += [] if self.hooks.answer_form is None else [AnswerTool.name]
        if not further:
            return roles
        lead = with_tools(leading_role(roles), further)
        return {**roles, lead.name: lead}

    def ending_tools(self) -> list[Tool]:
        """Return the tools that bring the run to its end."""
        finish = FinishTool(lambda is_empty: self._problem(is_empty=is_empty))
        answer = [] if self.hooks.answer_form is None else [AnswerTool(self.hooks.answer_form)]
        return [finish, *answer, *self.plan_tools]

    @property
    def plan_tools(self) -> list[Tool]:
        """The tools of the plan; empty where none is asked for."""
        return self.planner.tools()

    async def review(self, state: AgentState, decision: Decision | None) -> Decision | None:
        """Return what becomes of a decision: an end of the orchestrator without a report becomes a reminder."""

        async def problem() -> ModelText:
            found = await self._problem()
            return own("") if found is None else found.words

        return await reviewed(state, decision, lambda: missing_report(self.workspace), problem)

    async def _held_to_plan(self, state: AgentState, decision: Decision | None) -> Decision | None:
        """Return what becomes of a decision, by the rules of the report and by those of the plan, if there is one."""
        return self.planner.review(state, await self.review(state, decision))

    async def _problem(self, *, is_empty: bool = False) -> ToolError | None:
        """Return why the run cannot end yet."""
        has_time = not self.budget.winding_down
        found = await draft_problem(self.report_context, has_time=has_time, is_empty=is_empty)
        return found or (self._missing_answer() or self._repeated() if has_time else None)

    def _repeated(self) -> ToolError | None:
        """Return why the run cannot end yet, where the library has each story once and the report one again."""
        if self.settings.library != "once" or was_shown(self.run_state, ErrorCode.KNOWN_STORIES):
            return None
        draft = self.workspace.read_text(REPORT)
        return repetition_problem(repeated_stories(draft, self.run_state.sources, self._library_before()))

    def _without_repeated(self, draft: str) -> str:
        """Return a report without stories of earlier days, where the library has each story once."""
        if self.settings.library != "once":
            return draft
        language = phrases_in(self.settings.language, draft)
        return without_repeated(draft, self.run_state.sources, self._library_before(), language)

    def _library_before(self) -> LibraryBefore:
        past = self.past()
        return LibraryBefore(past.library.stored_reports(), past.run, created_at(past.run))

    def _missing_answer(self) -> ToolError | None:
        """Return why the run cannot end yet, where a program waits for an answer in its form."""
        if self.hooks.answer_form is None or self.records.answer is not None:
            return None
        return ToolError(own("the user's program waits for the answer: call {name}, then finish", name=AnswerTool.name))

    async def _orchestrate(self, team: Team, message: str) -> AgentFinished:
        """Start or resume the orchestrator, or ask it something further."""
        state = self.run_state.lead
        if state is not None and state.finished is not None and (message or self._ended_early(state)):
            await team.record_follow_up(message or self._why_continued())
        elif state is not None and message:
            await self.record(Steered(agent=ORCHESTRATOR, text=message, context=team.context_writer.of_message()))
        # Only now: until the run is open again on disk, a finished one keeps its report.
        restore_draft(self.run_state, self.workspace)
        if state is not None:
            return await team.run_orchestrator(state.task)
        inputs = await self._inputs()
        return await team.run_orchestrator(await self.first_words(), inputs)

    def _why_continued(self) -> NoteReason:
        over = self.run_state.finished
        is_without_sources = over is not None and over.status is Status.SOURCES_UNAVAILABLE
        return NoteReason.TRY_AGAIN if is_without_sources else NoteReason.CONTINUE

    def _ended_early(self, state: AgentState) -> bool:
        over = self.run_state.finished
        return over is not None and over.status is not Status.COMPLETE and state.finished is not None

    async def first_words(self) -> ModelText:
        """Return the task that the run begins with; programs read the run's state instead."""
        if self.run_state.started is None:
            raise ConfigError(f"{self.folder.name} was never started", hint='ask again: explorer "your question"')
        workspace = self.workspace
        workspace.write_own("question.txt", self.run_state.question)
        lines = [own("Question: {question}", question=by_user(self.run_state.question))]
        if self.settings.language:
            lines.append(own("Language of the report: {language}", language=by_user(self.settings.language)))
        since = self.settings.since_run
        earlier = await words_on_earlier(self.folder, since, workspace, self.source_store.store) if since else []
        return render(*lines, render(*earlier), between="\n\n")

    async def _inputs(self) -> dict[str, str]:
        """Store the user's files as sources; return their ids by path."""
        if not (self.folder / INPUTS).is_dir():
            return {}
        files = {info.path: info for info in self.workspace.files(INPUTS) if info.path not in SINCE_FILES}
        drafts = input_drafts(files, self.workspace.read_text)
        sources = await self.source_store.store([*drafts.values()])
        return {path: one.id for path, one in zip(drafts, sources, strict=True)}


@asynccontextmanager
async def _hurried(limit: asyncio.Timeout, budget: Budget) -> AsyncGenerator[None]:
    """Bring the end forward while inside, when the user stops the run: the report has half a minute."""
    loop = asyncio.get_running_loop()

    def hurry() -> None:
        latest = limit.when()
        limit.reschedule(min(loop.time() + REPORT_S, float("inf") if latest is None else latest))

    if budget.stopping.is_asked:
        hurry()
    with budget.stopping.when_asked(hurry):
        yield
