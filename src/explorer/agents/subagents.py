"""Roles become agents; and a helper becomes a tool, `call_agent`, made here, above the loop."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from explorer.agents.budget import (
    LEAST_EXPLORING_TOKENS,
    LEAST_WRITING_TOKENS,
    Account,
    Amount,
    Budget,
    Reservation,
    WorstCost,
)
from explorer.agents.call_agent import CallAgentArguments, CallAgentTool, Retry, index_line, subagent_result
from explorer.agents.compaction import DEFAULT_WINDOW_TOKENS, compaction_note, last_words
from explorer.agents.loop import AgentContext, PromptPrefix, run_agent
from explorer.agents.notes import note
from explorer.agents.policies import (
    Decision,
    Ending,
    Note,
    budget_note,
    concerns_run,
    cut_short,
    early_ending,
    failed_end,
    other_helpers,
    refuse_repetition,
    short_reply_note,
    ways_to_retry,
    write_now_note,
)
from explorer.agents.roles import (
    CALL_AGENT,
    Role,
    check_roles,
    helper_lines,
    helpers_in,
    leading_role,
    report_writers,
)
from explorer.agents.tool_calls import Append, CallServices, StoreFor, Toolbox
from explorer.agents.user_stop import CALL_GRACE_S, StoppableClient, StoppedError
from explorer.journal.agent_state import AgentState
from explorer.journal.control import ControlKind, ControlMessage, Inbox
from explorer.journal.run_state import RunState
from explorer.schema.errors import ConfigError, ModelError, ToolError
from explorer.schema.events import (
    ORCHESTRATOR,
    AgentContinued,
    AgentFinished,
    AgentStarted,
    RoleLoaded,
    Steered,
    StopAsked,
)
from explorer.schema.messages import LLMClient, ToolCall
from explorer.schema.reasons import NoteReason
from explorer.schema.tool import Effect, Tool, ToolResult
from explorer.workspace.access import refuse_engine_folder, refuse_report_folder
from explorer.workspace.workspace import Workspace

CUT_OFF_BY_STOP = frozenset({Effect.PURE, Effect.EXTERNAL})
"""Effects of calls that the user's stop cuts off; commands are ended by the shell, which keeps what they wrote."""


@dataclass(frozen=True)
class Model:
    """The model a role works with."""

    label: str
    """With the provider's prefix, e.g. `anthropic:claude-opus-5-5`."""
    name: str
    client: LLMClient
    worst_cost: WorstCost
    window_tokens: int | None = DEFAULT_WINDOW_TOKENS
    """None: its conversations are never shortened."""
    effort: str = ""
    """How much it is to reason; empty: as the vendor has it."""


@dataclass(frozen=True)
class TeamContext:
    """All that a team is made of."""

    roles: Mapping[str, Role]
    tools: Mapping[str, Tool]
    """Every tool there is, but `call_agent`, which the team makes itself."""
    absent: Mapping[str, str]
    """Tools a role may name that this run does not have, each with the reason."""
    model_of: Callable[[str], Model]
    """By role."""
    workspace: Workspace
    run_state: RunState
    record: Append
    budget: Budget
    inbox: Inbox
    notifications: Callable[[AgentState], Note | None]
    """What an agent is to be told of its background jobs."""
    clock: Callable[[], float]
    max_output_tokens: int
    store: StoreFor
    """Puts what tools found into the run's store of sources."""
    now: Callable[[], datetime]
    """The clock of the tools."""
    progress: Callable[[str], None] = lambda _words: None
    """Shows the user a line on how far a call is."""
    jobs: Callable[[str], Sequence[str]] = lambda _agent: ()
    """By agent, a line on each of its background jobs."""
    review: Callable[[AgentState, Decision | None], Decision | None] = lambda _state, decision: decision
    """What becomes of an orchestrator's end."""


class Team:
    """The agents of one run."""

    def __init__(self, parts: TeamContext) -> None:
        self._context = parts
        self._places = asyncio.Semaphore(parts.budget.limits.max_parallel_agents)
        self._busy: set[str] = set()
        self._numbers: dict[str, int] = {}
        """By role, the latest number given: hundreds of helpers do not each count from one."""
        self._lead = leading_role(parts.roles)
        """The role of the orchestrator."""
        self._writers = report_writers(parts.roles)
        """The roles that write the report."""
        self._loading = asyncio.Lock()
        self._ordering = asyncio.Lock()
        self._tools = {**parts.tools, CALL_AGENT: CallAgentTool(self.run_subagent, helper_lines(parts.roles))}
        check_roles(parts.roles, {*self._tools, *parts.absent})

    async def run_orchestrator(self, task: str, inputs: dict[str, str] | None = None) -> AgentFinished:
        """Start the orchestrator with a task, or take it from where its events left it."""
        run_state = self._context.run_state
        if ORCHESTRATOR not in run_state.agents:
            lead, steps = self._lead.name, self._lead.limits.max_steps
            await self._load(lead)
            begun = AgentStarted(agent=ORCHESTRATOR, role=lead, task=task, max_steps=steps, inputs=inputs or {})
            await self._context.record(begun)
        return await self._run(run_state.agents[ORCHESTRATOR])

    async def run_again(self, said: NoteReason) -> AgentFinished:
        """Continue the finished orchestrator with words of the engine, and let it work."""
        await self.record_follow_up(said)
        return await self._run(self._context.run_state.agents[ORCHESTRATOR])

    async def record_follow_up(self, said: str) -> None:
        """Put on disk how the finished orchestrator is continued; `run_orchestrator` lets it work.

        Args:
            said: Words of the user, from which the run's limits count again; or a `NoteReason` of the engine.
        """
        reason, words = (said, note(said).text) if isinstance(said, NoteReason) else ("", said)
        steps = self._lead.limits.max_steps
        continued = AgentContinued(
            agent=ORCHESTRATOR, task=words, max_steps=steps, renews_limits=not reason, reason=reason
        )
        await self._context.record(continued)

    async def run_subagent(self, asked: CallAgentArguments, call: str) -> ToolResult:
        """Run a helper for a `call_agent` call: a new one, an earlier one again, or the one the call had begun."""
        state = self._context.run_state.child_of(call) or await self._open_subagent(asked, call)
        try:
            async with self._places:
                finished = await self._run_subagent(state)
        finally:
            self._busy.discard(state.agent)
        return subagent_result(state, finished, full=asked.return_full_output, retry=self._retry(state, finished))

    async def _run_subagent(self, state: AgentState) -> AgentFinished:
        """Run a helper to its end; a failure of its model that the orchestrator does not share is its end."""
        try:
            return await self._run(state)
        except ModelError as error:
            models, over = self._context.model_of, self._context.budget.early_end
            if over and error.is_outage and state.role not in self._writers:
                finished = cut_short(state, over)
            elif concerns_run(error, models(state.role).label, models(self._lead.name).label):
                raise
            else:
                finished = failed_end(state.agent, error, last_words(state))
        await self._context.record(finished)
        return finished

    def _retry(self, state: AgentState, finished: AgentFinished) -> Retry | None:
        if not finished.fault:
            return None
        models = {role: self._context.model_of(role).label for role in self._context.roles}
        failed = models[state.role]
        others = other_helpers(failed, models, (role for role in models if role not in {self._lead.name, state.role}))
        return Retry(failed, others, ways_to_retry(state.agent, failed, others))

    async def _open_subagent(self, asked: CallAgentArguments, call: str) -> AgentState:
        parts = self._context
        task = self._task(asked)
        if asked.agent_id:
            state = self._earlier(asked)
            limit = parts.roles[state.role].limits.max_steps
            self._busy.add(state.agent)
            await parts.record(
                AgentContinued(agent=state.agent, parent_call=call, task=task, max_steps=_steps(asked, limit))
            )
            return state
        role = self._role(asked.agent_type)
        agent = self._new_id(role.name)
        # Claimed before anything is waited for: helpers started together count each other.
        self._busy.add(agent)
        await self._load(role.name)
        await parts.record(
            AgentStarted(
                agent=agent,
                role=role.name,
                parent=ORCHESTRATOR,
                parent_call=call,
                task=task,
                max_steps=_steps(asked, role.limits.max_steps),
            )
        )
        return parts.run_state.agents[agent]

    def _role(self, name: str) -> Role:
        helpers = [role.name for role in helpers_in(self._context.roles)]
        if name not in helpers:
            raise ToolError(f"there is no helper called {name!r}; your helpers: {', '.join(helpers)}")
        started = len(self._context.run_state.agents.keys() | self._busy) - 1
        most = self._context.budget.limits.max_agents
        has_writer = any(state.role in self._writers for state in self._context.run_state.agents.values())
        is_kept = bool(self._writers) and not has_writer and most > 1 and started == most - 1
        if is_kept and name not in self._writers:
            writers = " or ".join(sorted(self._writers))
            raise ToolError(
                f"this run may start {most} helpers; the last place is kept for the {writers}: "
                "work with what there is, or give an earlier helper a further task by its agent_id"
            )
        if started >= most and not (self._context.budget.winding_down and name in self._writers):
            raise ToolError(
                f"this run may start {most} helpers, and has; work with what there is, "
                "or give an earlier helper a further task by its agent_id"
            )
        return self._context.roles[name]

    def _earlier(self, asked: CallAgentArguments) -> AgentState:
        agents = self._context.run_state.agents
        state = agents.get(asked.agent_id)
        if state is None or asked.agent_id == ORCHESTRATOR:
            known = ", ".join(name for name in agents if name != ORCHESTRATOR) or "none yet"
            raise ToolError(f"there is no helper {asked.agent_id!r} in this run; there are: {known}")
        if state.finished is None or state.agent in self._busy:
            raise ToolError(f"{asked.agent_id} is still at work; ask it again when it has answered")
        return state

    def _new_id(self, role: str) -> str:
        number = self._numbers.get(role, 0) + 1
        # Ids claimed but not yet on disk count: two helpers started together must not share one.
        while (agent := f"{role}-{number}") in self._context.run_state.agents or agent in self._busy:
            number += 1
        self._numbers[role] = number
        return agent

    def _task(self, asked: CallAgentArguments) -> str:
        parts = [asked.task_description.strip()]
        if asked.output_dir:
            refuse_engine_folder(asked.output_dir)
            refuse_report_folder(f"{asked.output_dir}/x")
            parts.append(f"Write your files under `{asked.output_dir.strip('/')}/`.")
        if asked.context_files:
            lines = "\n".join(index_line(self._context.workspace, path) for path in asked.context_files)
            parts.append(f"Files for you (read them with read_file):\n{lines}")
        return "\n\n".join(parts)

    async def _load(self, role: str) -> None:
        """Freeze a role's head: prompt, tools and model stay for the whole run, whatever happens to the files."""
        async with self._loading:
            if role not in self._context.run_state.prefixes:
                await self._record_prefix(role)

    async def _record_prefix(self, role: str) -> None:
        known = self._context.roles[role]
        schemas = tuple(self._tools[name].schema() for name in known.tools if name in self._tools)
        model = self._context.model_of(role)
        await self._context.record(
            RoleLoaded(
                role=role,
                model=model.label,
                system=known.prompt,
                tools=schemas,
                max_steps=known.limits.max_steps,
                effort=model.effort,
            )
        )

    async def _run(self, state: AgentState) -> AgentFinished:
        if state.role not in self._context.roles:
            raise ConfigError(
                f"this run used the role {state.role!r}, which is not there now",
                hint="give its folder again: --roles DIR",
            )
        loaded = self._context.run_state.prefixes[state.role]
        model = self._context.model_of(state.role)
        toolbox = Toolbox(self._tools[tool.name] for tool in loaded.tools if tool.name in self._tools)
        stopping = self._context.budget.stopping
        # What the writer is asked for is what there is to wait for.
        client = model.client
        if state.role not in self._writers:
            client = StoppableClient(client, stopping, may_ask=state.agent == ORCHESTRATOR)
        context = AgentContext(
            prefix=PromptPrefix(model.name, loaded.system, loaded.tools, self._context.run_state.run_id, model.effort),
            client=client,
            calls=CallServices(
                toolbox,
                self._context.record,
                self._context.workspace,
                self._context.store,
                self._within,
                self._authorize,
                self._context.now,
                self._context.progress,
            ),
            account=lambda: self._account(state.role),
            on_exhausted=self._on_exhausted,
            worst_cost=model.worst_cost,
            max_output_tokens=self._context.max_output_tokens,
            clock=self._context.clock,
            before_request=self._before_request,
            shortened=self._shortened,
            window_tokens=model.window_tokens,
            compaction_note=self._compaction_note,
            review=self._context.review,
        )
        return await self._until_stopped(state, context)

    async def _until_stopped(self, state: AgentState, context: AgentContext) -> AgentFinished:
        """Run an agent; cut off by the user's stop, a helper ends with what it has, and the orchestrator writes up."""
        while True:
            try:
                return await run_agent(state, context)
            except StoppedError:
                if state.agent != ORCHESTRATOR:
                    await self._context.record(cut_short(state, self._context.budget.early_end))

    async def _within(self, tool: Tool, doing: Awaitable[ToolResult]) -> ToolResult:
        """Await what a tool does; a lookup that is at work when the user stops the run is cut off after a moment."""
        if tool.effect not in CUT_OFF_BY_STOP:
            return await doing
        try:
            async with self._context.budget.stopping.cut_off(CALL_GRACE_S):
                return await doing
        except StoppedError as error:
            raise ToolError(error.message) from error

    def check_for_stop(self) -> None:
        """Stop as soon as another process says so: no turn of an agent may come for minutes."""
        budget = self._context.budget
        if not budget.stopping.is_asked:
            order = next((one for one in self._context.inbox.waiting() if one.kind is ControlKind.STOP), None)
            if order is not None:
                budget.stop(order.text)

    def _compaction_note(self, state: AgentState) -> str:
        return compaction_note(state, self._context.run_state, self._context.workspace.read_text, self._context.jobs)

    def _account(self, role: str) -> Account:
        budget = self._context.budget
        return budget.root if budget.winding_down and self._may_use_reserve(role) else budget.exploration

    def _may_use_reserve(self, role: str) -> bool:
        """Whether a role may use what is held back for the report."""
        return role == self._lead.name or role in self._writers

    def _shortened(self, state: AgentState, hold: Reservation) -> Note | None:
        """What a reply that has to be shorter means: exploring is over, or the writer has to know its length."""
        budget, is_writer = self._context.budget, state.role in self._writers
        length, wished = hold.max_output_tokens, self._context.max_output_tokens
        if length >= wished or not self._may_use_reserve(state.role):
            return None
        if not budget.winding_down and length < (LEAST_WRITING_TOKENS if is_writer else LEAST_EXPLORING_TOKENS):
            more = Amount(0, wished, self._context.model_of(state.role).worst_cost(0, wished))
            budget.reach(budget.exploration.exceeded_limit(more) or "cost")
            return write_now_note(state, budget.winding_down) if is_writer else budget_note(state, budget)
        return short_reply_note(state, length) if is_writer else None

    def _on_exhausted(self, state: AgentState, limit: str) -> Ending | None:
        was_winding_down = bool(self._context.budget.winding_down)
        reached = self._context.budget.reach(limit)
        is_last = was_winding_down or not self._may_use_reserve(state.role)
        return early_ending(reached) if is_last else None

    async def _before_request(self, state: AgentState) -> Decision | None:
        await self._take_control_messages()
        budget = self._context.budget
        if state.agent == ORCHESTRATOR:
            return budget_note(state, budget)
        if budget.winding_down and state.role not in self._writers:
            return early_ending(budget.early_end)
        return self._context.notifications(state)

    async def has_unanswered_message(self) -> bool:
        """Whether the user said something to the orchestrator that it has not answered, though it could."""
        await self._take_control_messages()
        return self._context.run_state.agents[ORCHESTRATOR].is_steered and not self._context.budget.winding_down

    async def _take_control_messages(self) -> None:
        """Apply what another process left for this run: any agent's turn will do, the words go to the orchestrator."""
        if not self._context.inbox.waiting():
            return
        async with self._ordering:
            for order in self._context.inbox.waiting():
                await self._apply(order)
                self._context.inbox.done(order)

    async def _apply(self, order: ControlMessage) -> None:
        is_new = order.id not in self._context.run_state.orders
        if order.kind is ControlKind.STOP:
            if is_new:
                await self._context.record(StopAsked(order=order.id, reason=order.text))
            self._context.budget.stop(order.text)
        elif is_new:
            await self._context.record(Steered(agent=ORCHESTRATOR, text=order.text, order=order.id))

    def _authorize(self, agent: str, call: ToolCall) -> ToolError | None:
        state = self._context.run_state.agents[agent]
        reason = self._context.budget.winding_down
        if reason and state.agent == ORCHESTRATOR and not self._is_for_report(call):
            return ToolError(f"refused: the run is winding down ({reason}); only the report may be worked on")
        return refuse_repetition(state, call) or self._count(state, call)

    def _count(self, state: AgentState, call: ToolCall) -> ToolError | None:
        """Count a call before it is made; return why it is refused where the limit does not allow it."""
        budget = self._context.budget
        if budget.calls.take(for_report=self._may_use_reserve(state.role) and self._is_for_report(call)):
            return None
        budget.reach("calls")
        return ToolError(f"refused: this run may make {budget.calls.limit} tool calls, and has; end with what you have")

    def _is_for_report(self, call: ToolCall) -> bool:
        """Whether a call is left to the orchestrator once exploring is over; of helpers, only the writers."""
        if call.name == CALL_AGENT:
            return (call.arguments or {}).get("agent_type") in self._writers
        return call.name in self._tools and self._tools[call.name].is_for_report


def _steps(asked: CallAgentArguments, limit: int) -> int:
    return limit if asked.max_steps is None else min(asked.max_steps, limit)
