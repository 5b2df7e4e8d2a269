"""What an agent has to be told again once its old exchanges are left out: helpers, plan, jobs."""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from explorer.journal.agent_state import AgentState
from explorer.journal.run_state import RunState
from explorer.schema.errors import ToolError
from explorer.schema.events import ORCHESTRATOR, Status

MAX_HELPERS = 120
MAX_PLAN_CHARS = 4_000
PLANS = ("plan", "todo", "notes")
"""What a file is called that an agent keeps its plan in."""


def compaction_note(
    state: AgentState, run_state: RunState, read: Callable[[str], str], jobs: Callable[[str], Sequence[str]]
) -> str:
    """What is on record for one agent, beside its own files.

    Args:
        state: Whose it is.
        run_state: The whole run.
        read: A file of the run, by path.
        jobs: By agent, a line on each of its background jobs.
    """
    parts = [_plan(state, read)]
    if state.role == ORCHESTRATOR:
        parts += [_helpers(run_state), f"Files of this run: {len(run_state.files)}." if run_state.files else ""]
    lines = jobs(state.agent)
    if lines:
        parts.append("\n".join(["Your background jobs:", *lines]))
    return "\n\n".join(part for part in parts if part)


def _plan(state: AgentState, read: Callable[[str], str]) -> str:
    """The file an agent keeps its plan in, as it stands."""
    paths = [path for path in state.files if PurePosixPath(path).stem.lower().startswith(PLANS)]
    if not paths:
        return ""
    try:
        text = read(paths[-1])
    except ToolError:
        return ""  # it was removed or renamed since, as its writer knows
    rest = "\n[...]" if len(text) > MAX_PLAN_CHARS else ""
    return f"{paths[-1]} as it stands:\n{text[:MAX_PLAN_CHARS]}{rest}"


def _helpers(run_state: RunState) -> str:
    """The helpers there are, the latest in full."""
    helpers = [state for state in run_state.agents.values() if state.role != ORCHESTRATOR]
    if not helpers:
        return ""
    shown = helpers[-MAX_HELPERS:]
    earlier = [f"- {len(helpers) - len(shown)} earlier ones"] if len(helpers) > len(shown) else []
    return "\n".join(["Your helpers, each of which remembers what it did:", *earlier, *map(_helper_line, shown)])


def _helper_line(state: AgentState) -> str:
    ended = state.finished.status if state.finished is not None else "at work"
    reason = f" ({state.finished.reason})" if state.finished and state.finished.status is not Status.COMPLETE else ""
    written = [*state.files]
    files = f"; wrote {written[0]}" if written else "; wrote nothing"
    more = f" and {len(written) - 1} more" if len(written) > 1 else ""
    return f"- {state.agent}: {ended}{reason}{files}{more}"
