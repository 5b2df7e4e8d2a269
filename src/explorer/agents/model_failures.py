"""What a model that brings no turn means: the run pauses, or one helper has failed and the others continue."""

from collections.abc import Iterable, Mapping

from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.events import AgentFinished, Status

FORBIDDEN = 403
"""A key may be good for one model and not for another; 401 is about the key itself."""
OF_THE_MODEL = frozenset({ModelFault.CREDENTIALS, ModelFault.UNKNOWN_MODEL, ModelFault.UNSUPPORTED})


def concerns_run(error: ModelError, model: str, lead: str) -> bool:
    """Say whether a helper's model error would meet the orchestrator next, so that the run cannot continue.

    Args:
        error: What the helper's model brought.
        model: The helper's, with its provider's prefix.
        lead: The orchestrator's.
    """
    if model == lead:
        return error.is_outage or error.fault in OF_THE_MODEL
    if model.partition(":")[0] != lead.partition(":")[0]:
        return False
    is_key = error.fault is ModelFault.CREDENTIALS and error.status != FORBIDDEN
    return is_key or (error.is_outage and error.fault is ModelFault.TRANSPORT)


def failed_end(agent: str, error: ModelError, summary: str) -> AgentFinished:
    """Return the end of a helper whose model failed; a further task by its id continues it."""
    return AgentFinished(agent=agent, status=Status.FAILED, reason=error.message, summary=summary, fault=error.fault)


def other_helpers(model: str, models: Mapping[str, str], helpers: Iterable[str]) -> dict[str, str]:
    """Return the helpers with another model than the one that failed, each with its model."""
    return {role: models[role] for role in helpers if models[role] != model}


def ways_to_retry(agent: str, model: str, others: Mapping[str, str]) -> str:
    """Say to the orchestrator how the work of a helper whose model failed can be done all the same."""
    again = f'call_agent with agent_id "{agent}" continues it, once {model} answers again'
    named = ", ".join(f"{role} ({other})" for role, other in others.items())
    return f"{again}; helpers with another model: {named}" if named else f"{again}; no helper has another model"
