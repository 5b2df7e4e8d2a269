"""Sessions of one agent: on a task without helpers and without a report, or in lean mode.

It works with all that the agents of a run work with: a journal, limits, the run's files and a store of sources.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from explorer.agents.context_block import RunFacts
from explorer.agents.decisions import Decision
from explorer.agents.roles import Role, RoleLimits, leading_role
from explorer.journal.agent_state import AgentState
from explorer.lean.progress import PAGE_CHARS
from explorer.run.finish import Conclusion
from explorer.run.outcome import Outcome
from explorer.run.session import RunSession
from explorer.schema.events import AgentFinished, SingleAgent, Status
from explorer.schema.reasons import EndReason
from explorer.schema.tool import Tool
from explorer.sources.date_ranges import zone_named
from explorer.text.rendering import ModelText, by_user, code, inline, own, render
from explorer.tools.finish import AnswerTool
from explorer.tools.shell import SHELL_TOOLS
from explorer.tools.sources import ReadSourceTool

MAX_STEPS = 100
NO_ANSWER = "the agent ended without an answer in the form that was asked for"
CUT_OFF = "the agent was cut off"


class AgentSession(RunSession):
    """A session of one agent: the one that the run's first record describes."""

    @property
    def _agent(self) -> SingleAgent:
        assert self.run_state.started is not None
        assert self.run_state.started.single_agent is not None
        return self.run_state.started.single_agent

    def roles(self) -> Mapping[str, Role]:
        """Return the one role there is; it has the name and the model of the one that leads a run."""
        agent = self._agent
        # Somebody else's agent gets no shell: only a program of this user's could have given it one.
        shell = {tool.name for tool in SHELL_TOOLS} if self.records.carried else frozenset[str]()
        tools = tuple(name for name in agent.tools if name not in shell)
        names = tools if self.hooks.answer_form is None else (*tools, AnswerTool.name)
        lead = leading_role(self.resources.roles)
        role = Role(
            name=lead.name,
            description="The only agent.",
            leads=True,
            tools=names,
            limits=RoleLimits(max_steps=MAX_STEPS),
            prompt=agent.instructions,
            path=Path("instructions"),
            effort=lead.effort,
        )
        return {lead.name: role}

    def ending_tools(self) -> list[Tool]:
        """Return the tool that takes an answer in a form; an agent ends by saying something and calling nothing."""
        return [] if self.hooks.answer_form is None else [AnswerTool(self.hooks.answer_form)]

    async def review(self, state: AgentState, decision: Decision | None) -> Decision | None:
        """Return a decision as it is: no report is missing."""
        return decision

    async def first_words(self) -> ModelText:
        """Return the task, as it was given."""
        return by_user(self.run_state.question)

    async def conclude(self, ended: AgentFinished | None, cut: EndReason) -> Conclusion:
        """Take the agent's last words as the answer; citations in them are checked."""
        words = "" if ended is None else ended.summary.strip()
        outcome = self._outcome(ended, cut)
        verification = await self.report_context.citations.check_in_thread(words)
        return Conclusion(outcome.status, outcome.reason, "", verification, words=words, cause=outcome.cause)

    def _outcome(self, ended: AgentFinished | None, cut: EndReason) -> Outcome:
        if ended is None or cut:
            return Outcome(Status.PARTIAL, cut.words or CUT_OFF, cut.cause)
        if ended.status is Status.COMPLETE and self.hooks.answer_form is not None and self.records.answer is None:
            return Outcome(Status.PARTIAL, NO_ANSWER)
        return Outcome(ended.status, "" if ended.status is Status.COMPLETE else ended.reason, ended.cause)


class LeanSession(RunSession):
    """A session of a run whose one agent fills in forms."""

    def all_tools(self, own: Iterable[Tool]) -> dict[str, Tool]:
        """Return the tools of a run, with shorter pages of sources."""
        reading = ReadSourceTool(self.workspace, lambda: self.run_state.sources, PAGE_CHARS)
        return {**super().all_tools(own), reading.name: reading}

    @property
    def plan_tools(self) -> list[Tool]:
        """Empty: the one agent calls nobody."""
        return []

    async def facts(self) -> RunFacts | None:
        """Return nothing: the first words have the date and the files, and forms show the rest."""
        return None

    async def first_words(self) -> ModelText:
        """Return the question, the date, and what can be read: each word costs a small machine time."""
        self.workspace.write_own("question.txt", self.run_state.question)
        sources = [
            own("{id} {title}", id=code(one.id), title=inline(one.title)) for one in self.run_state.sources.values()
        ]
        language, today = self.settings.language, self.hooks.now().astimezone(zone_named(self.settings.timezone))
        return render(
            own("The question: {question}", question=by_user(self.run_state.question)),
            own("Today: {date:%Y-%m-%d}.", date=today),
            own("Language of the answer: {language}.", language=by_user(language)) if language else own(""),
            own("Sources:\n{sources}", sources=render(*sources)) if sources else own(""),
            own("A folder of the user's can be searched.") if self.settings.corpus is not None else own(""),
        )
