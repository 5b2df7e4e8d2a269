"""Makes agents of roles, and a tool of the helpers: `call_agent`, which starts an agent from within another's loop."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from explorer.agents.call_agent import (
    OF_HELPER,
    OF_ORCHESTRATOR,
    CallAgentArguments,
    CallAgentTool,
    PlannedCallArguments,
    Retry,
    subagent_result,
    task_text,
)
from explorer.agents.compaction import last_words
from explorer.agents.context_block import ContextWriter
from explorer.agents.decisions import WORDS, Decision
from explorer.agents.loop import AgentContext, PromptPrefix, run_agent
from explorer.agents.on_record import MAX_HELPERS_CHARS, compaction_note
from explorer.agents.policies import concerns_run, cut_short, failed_end, other_helpers, ways_to_retry
from explorer.agents.role_results import GIVE_RESULT, GiveResultTool, asked_for_result, refusals, result_of
from explorer.agents.roles import (
    CALL_AGENT,
    Role,
    check_defaults,
    check_roles,
    helper_lines,
    helpers_of,
    leading_role,
    report_writers,
    tool_of,
)
from explorer.agents.run_rules import Model, RunRules, TeamContext
from explorer.agents.tool_calls import CallServices
from explorer.agents.user_stop import StoppableClient, StoppedError
from explorer.journal.agent_state import AgentState
from explorer.journal.context_size import LOAD_SKILL
from explorer.journal.run_state import caller_of
from explorer.schema.errors import ConfigError, ModelError, ToolError
from explorer.schema.events import ORCHESTRATOR, AgentContinued, AgentFinished, AgentStarted, RoleLoaded
from explorer.schema.reasons import NoteReason
from explorer.schema.tool import Tool, ToolResult
from explorer.schema.toolbox import Toolbox
from explorer.text.rendering import ModelText, code, codes, own, render


class Team:
    """The agents of one run."""

    def __init__(self, context: TeamContext) -> None:
        self._context = context
        self.rules = RunRules(context)
        self._places = asyncio.Semaphore(context.budget.limits.max_parallel_agents)
        self._busy: set[str] = set()
        """Helpers that are at work, and those whose ids are taken and which are not on record yet."""
        self._numbers: dict[str, int] = {}
        """Each role's latest number, so that hundreds of helpers are not each counted from one."""
        self.context_writer = ContextWriter(context.facts, context.run_state, context.budget)
        self._lead = leading_role(context.roles)
        self._writers = report_writers(context.roles)
        self._loading = asyncio.Lock()
        self._lent: Counter[str] = Counter()
        """How many helpers each helper waits for."""
        tools: dict[str, Tool] = {**context.tools, CALL_AGENT: self._call_agent(self._lead)}
        self._tools = {name: context.guard(tool) for name, tool in tools.items()}
        check_roles(context.roles, {*self._tools, *context.absent}, context.max_depth)
        check_defaults(context.roles, self._tools.values())

    async def run_orchestrator(self, task: str, inputs: dict[str, str] | None = None) -> AgentFinished:
        """Start the orchestrator with a task, or resume it from where its events left it."""
        run_state = self._context.run_state
        if ORCHESTRATOR not in run_state.agents:
            lead, steps = self._lead.name, self._lead.limits.max_steps
            await self._load(lead)
            inputs = inputs or {}
            await self._context.record(
                AgentStarted(
                    agent=ORCHESTRATOR,
                    role=lead,
                    task=task,
                    context=self.context_writer.of_run(steps, [*inputs.items()]),
                    max_steps=steps,
                    inputs=inputs,
                )
            )
        return await self._run(run_state.agents[ORCHESTRATOR])

    async def run_again(self, said: NoteReason) -> AgentFinished:
        """Continue the finished orchestrator with a note of the engine, and let it work."""
        await self.record_follow_up(said)
        return await self._run(self._context.run_state.agents[ORCHESTRATOR])

    async def record_follow_up(self, said: str) -> None:
        """Record how the finished orchestrator is continued; `run_orchestrator` lets it work.

        Args:
            said: A message of the user, after which the run's limits count again; or a `NoteReason` of the engine.
        """
        reason, words = (said, WORDS[said]) if isinstance(said, NoteReason) else ("", said)
        steps = self._lead.limits.max_steps
        await self._context.record(
            AgentContinued(
                agent=ORCHESTRATOR,
                task=words,
                context=self.context_writer.of_further_task(steps),
                max_steps=steps,
                renews_limits=not reason,
                reason=reason,
            )
        )

    async def run_subagent(self, asked: CallAgentArguments, call: str) -> ToolResult:
        """Run a helper for a `call_agent` call: a new one, an earlier one again, or the one the call had begun."""
        state = self._context.run_state.child_of(call) or await self._open_subagent(asked, call)
        try:
            async with self._place(self._caller(call)):
                finished = await self._run_subagent(state)
        finally:
            self._busy.discard(state.agent)
        role = self._context.roles.get(state.role)
        read = self._context.workspace.read_text
        return subagent_result(
            state,
            finished,
            full=asked.return_full_output,
            retry=self._retry(state, finished),
            result=result_of(role, state, read) if role is not None else {},
        )

    async def _run_subagent(self, state: AgentState) -> AgentFinished:
        """Run a helper to its end; it also ends when its model fails and the orchestrator's does not."""
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
        caller = self._caller(call)
        task = self._task(asked, caller)
        if asked.agent_id:
            state = self._earlier(asked, caller)
            limit = parts.roles[state.role].limits.max_steps
            self._busy.add(state.agent)
            steps = _steps(asked, limit)
            context = self.context_writer.of_further_task(steps, call)
            await parts.record(
                AgentContinued(
                    agent=state.agent,
                    parent_call=call,
                    task=task,
                    context=context,
                    max_steps=steps,
                    question=_question(asked),
                )
            )
            return state
        role = self._role(asked.agent_type, caller)
        agent = self._new_id(role.name)
        # Claimed before the first await: helpers that are started together count each other.
        self._busy.add(agent)
        await self._load(role.name)
        steps = _steps(asked, role.limits.max_steps)
        await parts.record(
            AgentStarted(
                agent=agent,
                role=role.name,
                parent=caller,
                parent_call=call,
                task=task,
                context=self.context_writer.of_helper(steps, call),
                max_steps=steps,
                question=_question(asked),
            )
        )
        return parts.run_state.agents[agent]

    def _caller(self, call: str) -> str:
        """Return the agent that made a call."""
        caller = caller_of(call)
        return caller if caller in self._context.run_state.agents else ORCHESTRATOR

    @asynccontextmanager
    async def _place(self, caller: str) -> AsyncGenerator[None]:
        """Wait for a place among the helpers at work; a helper lends its own while it waits for its helpers."""
        is_helper = caller != ORCHESTRATOR
        if is_helper and not self._lent[caller]:
            self._places.release()
        self._lent[caller] += is_helper
        try:
            async with self._places:
                yield
        finally:
            self._lent[caller] -= is_helper
            if is_helper and not self._lent[caller]:
                await self._places.acquire()

    def _call_agent(self, role: Role) -> CallAgentTool:
        """Return the tool by which agents of a role call helpers; only the orchestrator's tasks are of the plan."""
        lines = helper_lines(helpers_of(role, self._context.roles))
        return CallAgentTool(self.run_subagent, lines, has_plan=self._context.has_plan and role.leads)

    def _role(self, name: str, caller: str) -> Role:
        asking = self._context.run_state.agents[caller]
        is_deepest = asking.parent and (self._context.max_depth == 1 or asking.parent != ORCHESTRATOR)
        of = self._context.roles.get(asking.role, self._lead)
        helpers = [] if is_deepest else [role.name for role in helpers_of(of, self._context.roles)]
        if not helpers:
            raise ToolError(own("helpers of helpers call no one: do this part of your task yourself"))
        if name not in helpers:
            raise ToolError(
                own(
                    "there is no helper called {name}; your helpers: {helpers}",
                    name=repr(name),
                    helpers=codes(helpers),
                )
            )
        started = len(self._context.run_state.agents.keys() | self._busy) - 1
        most = self._context.budget.limits.max_agents
        has_writer = any(state.role in self._writers for state in self._context.run_state.agents.values())
        is_kept = bool(self._writers) and not has_writer and most > 1 and started == most - 1
        if is_kept and name not in self._writers:
            writers = render(*map(code, sorted(self._writers)), between=" or ")
            raise ToolError(
                own(
                    "this run may start {most} helpers; the last place is kept for the {writers}: work with what "
                    "there is, or give an earlier helper a further task by its agent_id",
                    most=most,
                    writers=writers,
                )
            )
        if started >= most and not (self._context.budget.winding_down and name in self._writers):
            raise ToolError(
                own(
                    "this run may start {most} helpers, and has; work with what there is, or give an earlier helper "
                    "a further task by its agent_id",
                    most=most,
                )
            )
        return self._context.roles[name]

    def _earlier(self, asked: CallAgentArguments, caller: str) -> AgentState:
        agents = {name: one for name, one in self._context.run_state.agents.items() if one.parent == caller}
        state = agents.get(asked.agent_id)
        if state is None:
            known = codes(agents) or own("none yet")
            raise ToolError(
                own(
                    "there is no helper {agent_id} in this run; there are: {known}",
                    agent_id=repr(asked.agent_id),
                    known=known,
                )
            )
        if state.finished is None or state.agent in self._busy:
            raise ToolError(
                own("{agent_id} is still at work; ask it again when it has answered", agent_id=asked.agent_id)
            )
        return state

    def _new_id(self, role: str) -> str:
        number = self._numbers.get(role, 0) + 1
        # Ids claimed but not yet on disk count: two helpers started together must not share one.
        while (agent := f"{role}-{number}") in self._context.run_state.agents or agent in self._busy:
            number += 1
        self._numbers[role] = number
        return agent

    def _task(self, asked: CallAgentArguments, caller: str) -> str:
        """Return a helper's task."""
        lead = self._context.run_state.lead
        ids = lead.input_ids if lead is not None else {}
        return task_text(asked, self._context.workspace, ids, OF_ORCHESTRATOR if caller == ORCHESTRATOR else OF_HELPER)

    @property
    def tools(self) -> Mapping[str, Tool]:
        """All tools of the run by name."""
        return self._tools

    async def _load(self, role: str) -> None:
        """Record a role's prompt, tools and model, which stay for the whole run whatever happens to the files."""
        async with self._loading:
            run_state = self._context.run_state
            if role not in run_state.prefixes or role in run_state.foreign_roles:
                await self._record_prefix(role)

    async def _record_prefix(self, role: str) -> None:
        known = self._context.roles[role]
        schemas = tuple(tool.schema() for tool in self._tools_of(known).values())
        model = self._context.model_of(role)
        skills = self._context.skills if LOAD_SKILL in known.tools else ""
        await self._context.record(
            RoleLoaded(
                role=role,
                model=model.label,
                system="\n\n".join(filter(None, [known.prompt_for(model.label), skills])),
                tools=schemas,
                max_steps=known.limits.max_steps,
                effort=model.effort,
            )
        )

    async def _run(self, state: AgentState) -> AgentFinished:
        """Run an agent to its end, with what its role, its model and the run's rules give it."""
        if state.role not in self._context.roles:
            raise ConfigError(
                f"this run used the role {state.role!r}, which is not there now",
                hint="give its folder again, --roles DIR, or its preset, --preset NAME",
            )
        await self._load(state.role)
        loaded = self._context.run_state.prefixes[state.role]
        model = self._context.model_of(state.role)
        role = self._context.roles[state.role]
        offered = {**self._tools, **self._tools_of(role)}
        toolbox = Toolbox(offered[tool.name] for tool in loaded.tools if tool.name in offered)
        # What the writer is asked for is what there is to wait for.
        client = model.client
        if state.role not in self._writers:
            client = StoppableClient(client, self._context.budget.stopping, may_ask=state.agent == ORCHESTRATOR)

        async def review(state: AgentState, decision: Decision | None) -> Decision | None:
            return asked_for_result(role, state, await self._context.review(state, decision))

        context = AgentContext(
            prefix=PromptPrefix(model.name, loaded.system, loaded.tools, self._context.run_state.run_id, model.effort),
            client=client,
            calls=CallServices(
                toolbox,
                record=self._context.record,
                workspace=self._context.workspace,
                store=self._context.store,
                within=self.rules.within,
                authorize=self.rules.authorize,
                now=self._context.now,
                progress=self._context.progress,
            ),
            account=lambda: self.rules.account(state.role),
            on_exhausted=self.rules.on_exhausted,
            worst_cost=model.worst_cost,
            max_output_tokens=self._context.max_output_tokens,
            clock=self._context.clock,
            before_request=self.rules.before_request,
            shortened=self.rules.shortened,
            context_policy=model.context_policy,
            compaction_note=lambda state: self._on_record(state, model),
            review=review,
        )
        return await self._until_stopped(state, context)

    def _tools_of(self, role: Role) -> dict[str, Tool]:
        """Return the tools that agents of a role may call, in the order in which their model sees them."""
        tools = {name: tool_of(role, self._tools[name]) for name in role.tools if name in self._tools}
        if CALL_AGENT in tools and not role.leads:
            tools[CALL_AGENT] = self._context.guard(self._call_agent(role))
        if role.result.is_given and not role.leads:
            agents = self._context.run_state.agents
            given = GiveResultTool(role.result, lambda agent: refusals(agents[agent]))
            tools[GIVE_RESULT] = self._context.guard(given)
        return tools

    def _on_record(self, state: AgentState, model: Model) -> ModelText:
        """Return what an agent has to know of the run next to a summary; helpers take a quarter of a window."""
        parts, window = self._context, model.context_policy.window_tokens or MAX_HELPERS_CHARS
        return compaction_note(
            state, parts.run_state, parts.workspace.read_text, parts.jobs, min(window, MAX_HELPERS_CHARS)
        )

    async def _until_stopped(self, state: AgentState, context: AgentContext) -> AgentFinished:
        """Run an agent; after the user's stop a helper ends at once, and the orchestrator has the report made."""
        while True:
            try:
                return await run_agent(state, context)
            except StoppedError:
                if state.agent != ORCHESTRATOR:
                    await self._context.record(cut_short(state, self._context.budget.early_end))


def _steps(asked: CallAgentArguments, limit: int) -> int:
    return limit if asked.max_steps is None else min(asked.max_steps, limit)


def _question(asked: CallAgentArguments) -> str:
    return asked.question_id if isinstance(asked, PlannedCallArguments) else ""
