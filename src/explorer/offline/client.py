"""`offline`: an `LLMClient` without a language model. It plans by rule and writes by extraction.

It drives the same engine as a model does (helpers, tools, files, a cited report), so a machine with nothing set up
has something that works, and tests and examples run on it.
"""

from collections.abc import Callable, Generator, Sequence

from explorer.offline.documents import analyze, take_notes
from explorer.offline.orchestrator import orchestrate
from explorer.offline.script_state import (
    PROVIDER,
    VERSION,
    Ask,
    Script,
    ScriptState,
    Step,
    ToolAnswer,
    play,
    split_history,
)
from explorer.offline.searcher import search
from explorer.offline.writer import write
from explorer.schema.messages import JsonObject, Request, StopKind, ToolCall, Turn, Usage

ROLES: dict[str, Callable[[ScriptState], Script]] = {"searcher": search, "analyzer": analyze, "writer": write}
LEADS_WITH = "finish_exploration"
"""Who has this tool is the orchestrator, whatever its role is called."""


class OfflineClient:
    """Answers a request by rule: the same request always gets the same turn, and nothing is remembered between two."""

    async def generate(self, request: Request) -> Turn:
        """Return the next turn of the role that asks."""
        return next_turn(request)


def next_turn(request: Request) -> Turn:
    """Return the next turn, as a function of the request alone."""
    task, said, exchanges = split_history(request.history)
    state = ScriptState(task, {tool.name: tool for tool in request.tools}, messages=said[-1:])
    script = (
        orchestrate(state) if LEADS_WITH in state.tools else _task_by_task(ROLES.get(request.role, take_notes), state)
    )
    step = play(script, state, exchanges)
    number = 1 + sum(1 for message in request.history if isinstance(message, Turn))
    calls = tuple(
        ToolCall(id=f"call_{number}_{place}", name=call.tool, arguments=_known_arguments(call, state))
        for place, call in enumerate(step.calls, 1)
    )
    return Turn(
        provider=PROVIDER,
        model=PROVIDER,
        blocks=_blocks(step, calls),
        text=step.text,
        calls=calls,
        stop=StopKind.TOOL_USE if calls else StopKind.END,
        usage=Usage(),
        cost_usd=0.0,
    )


def _task_by_task(
    role: Callable[[ScriptState], Script], state: ScriptState
) -> Generator[Step, Sequence[ToolAnswer], str]:
    """Do a helper's task, and whatever further task comes."""
    while True:
        summary = yield from role(state)
        yield Step(text=summary)
        task = state.take_task()
        while task is None:
            # Nothing new was asked: the summary is still right.
            yield Step(text=summary)
            task = state.take_task()
        state.task, state.is_hurried = task, False


def _known_arguments(call: Ask, state: ScriptState) -> JsonObject:
    """Return the arguments that the tool takes here: tools refuse what they do not know."""
    known = state.tools[call.tool].parameters.get("properties")
    if not isinstance(known, dict) or not known:
        return call.arguments
    return {name: value for name, value in call.arguments.items() if name in known}


def _blocks(step: Step, calls: Sequence[ToolCall]) -> tuple[JsonObject, ...]:
    words: list[JsonObject] = [{"type": "text", "text": step.text}] if step.text else []
    return (
        {"type": "script", "version": VERSION},
        *words,
        *({"type": "tool_call", "id": call.id, "name": call.name} for call in calls),
    )
