"""The context block: what the engine states to an agent with its task, such as date, limits and sources.

It is made of data when the task is recorded, and recorded with it: a resumed run sends the same words again. It follows
the task in the first message, because the part before it (system text and tools) is shared by all agents of a role.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from explorer.agents.budget import Budget
from explorer.agents.roles import CALL_AGENT
from explorer.journal.agent_state import AgentState
from explorer.journal.run_state import RunState, caller_of
from explorer.text.rendering import NOTHING, ModelText, code, inline, own, render

HEADING = own("Context, stated by the engine:")
MAX_QUESTION_CHARS = 1_500
"""Limit of the user's question in a helper's context; all of it is in `question.txt`."""
MAX_NEIGHBOURS = 6
NEIGHBOUR_CHARS = 120
MAX_FILES = 40
"""Limit of the user's files that are listed; the others are counted."""


@dataclass(frozen=True)
class RunFacts:
    """What a session knows for the context of all its agents."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """Returns the time in the user's zone."""
    reachable: Sequence[ModelText] = ()
    """A line each on search engines, pages, sites, shell and the user's folder."""
    earlier: ModelText = NOTHING
    """What the library and earlier runs hold on the question; empty: nothing."""


@dataclass(frozen=True)
class ContextWriter:
    """Writes the contexts of a run's agents."""

    facts: RunFacts | None
    """None: nothing is stated."""
    run_state: RunState
    budget: Budget

    def of_run(self, steps: int, files: Sequence[tuple[str, str]]) -> ModelText:
        """Return the context of the agent that the run begins with.

        Args:
            steps: The turns it may take.
            files: Paths of the user's files, each with its source id.
        """
        limits = self.budget.limits
        helpers = "Helpers: {most} at most, {at_once} at once."
        return self._block(
            own("Your task is the whole question."),
            self._limits(steps),
            own(helpers, most=limits.max_agents, at_once=limits.max_parallel_agents),
            *self._shared(files),
        )

    def of_helper(self, steps: int, call: str) -> ModelText:
        """Return the context of a new helper that the engine's call of that key starts."""
        lead = self.run_state.lead
        files = [*lead.input_ids.items()] if lead is not None else []
        return self._block(*self._place(lead), self._neighbours(call), self._limits(steps), *self._shared(files))

    def of_further_task(self, steps: int, call: str = "") -> ModelText:
        """Return the context of a further task or a follow-up: what has changed since the first one."""
        return self._block(self._neighbours(call), self._limits(steps))

    def of_message(self) -> ModelText:
        """Return the context of a message of the user: when it came."""
        return self._block()

    def _block(self, *lines: ModelText) -> ModelText:
        if self.facts is None:
            return NOTHING
        time = own("Now: {time:%A, %Y-%m-%d %H:%M %Z} (UTC{time:%z}).", time=self.facts.now())
        return render(HEADING, *(own("- {line}", line=line) for line in (time, *lines) if line))

    def _place(self, lead: AgentState | None) -> list[ModelText]:
        """Return the question that a helper's task is a part of, and the follow-up if there was one."""
        started = self.run_state.started
        if lead is None or started is None:
            return []
        lines = [
            own(
                "Your task is part of the answer to this question of the user: {words}",
                words=inline(started.question, MAX_QUESTION_CHARS),
            )
        ]
        if self.run_state.is_follow_up:
            lines.append(own("Since then the user asked: {words}", words=inline(lead.latest_task, MAX_QUESTION_CHARS)))
        return lines

    def _neighbours(self, call: str) -> ModelText:
        """Return what the helpers do that the caller asked in the same turn."""
        lead = self.run_state.agents.get(caller_of(call))
        turn, own_call = (lead.open_turn, lead.call_at(call)) if lead is not None else (None, None)
        calls = turn.calls if turn is not None and call else ()
        others = [one for one in calls if one is not own_call and one.name == CALL_AGENT]
        if not others:
            return own("")
        shown = [
            own(
                "{role}: {task}",
                role=code(str((one.arguments or {}).get("agent_type", ""))),
                task=inline(str((one.arguments or {}).get("task_description", "")), NEIGHBOUR_CHARS),
            )
            for one in others[:MAX_NEIGHBOURS]
        ]
        if len(others) > len(shown):
            shown.append(own("{count} more", count=len(others) - len(shown)))
        return own("At work at the same time, so not yours to do: {tasks}", tasks=render(*shown, between="; "))

    def _limits(self, steps: int) -> ModelText:
        """Return an agent's turns, and what the run may use before its report."""
        account, calls, left_s = self.budget.exploration, self.budget.calls, self.budget.seconds_left
        parts: list[ModelText] = []
        if account.max_steps is not None:
            parts.append(own("{left} turns", left=max(0, account.max_steps - account.used.steps)))
        if calls.limit is not None:
            parts.append(own("{left} tool calls", left=max(0, calls.limit - calls.made)))
        if account.max_cost_usd is not None:
            parts.append(own("{left:.2f} USD", left=max(0.0, account.max_cost_usd - account.used.cost_usd)))
        if account.max_tokens is not None:
            parts.append(own("{left:,} tokens", left=max(0, account.max_tokens - account.used.tokens)))
        if left_s is not None:
            parts.append(own("{left:.0f} minutes", left=left_s / 60))
        own_share = own("Your limit: {steps} turns.", steps=steps)
        rest = own("Left for all agents of the run: {parts}.", parts=render(*parts, between=", ")) if parts else own("")
        return render(own_share, rest, between=" ")

    def _shared(self, files: Sequence[tuple[str, str]]) -> list[ModelText]:
        """Return the lines that all agents of the run have in common."""
        named = [
            own("{path} [{id}]", path=path, id=code(one)) if one else inline(path) for path, one in files[:MAX_FILES]
        ]
        if len(files) > len(named):
            named.append(own("and {count} more", count=len(files) - len(named)))
        given = own("Files from the user, with their source ids: {files}", files=render(*named, between=", "))
        facts = self.facts or RunFacts()
        return [*facts.reachable, given if named else own(""), facts.earlier]
