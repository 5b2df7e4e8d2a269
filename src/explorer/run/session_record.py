"""What a session of a run works with, as data: models, search engine, shell and limits, each with its reason."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from loguru import logger

from explorer.journal.run_state import RunState
from explorer.run.resources import JUDGE, RunResources, effort_of, reserve_for_report
from explorer.run.settings_parts import search_setup
from explorer.schema.events import LimitInUse, ModelInUse, SessionConfigured
from explorer.schema.limits import Limits
from explorer.schema.model_options import Tier
from explorer.schema.settings import Settings
from explorer.sources.search.selection import plan_search

OWN = "own"
"""The label of a client that the embedding program handed in."""
AS_STARTED = "as the run was started"


@dataclass(frozen=True)
class SessionReasons:
    """What is known of where a session's settings come from."""

    given: Settings
    """As they were given now, before anything of an earlier session was added."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """By a setting's name, the flag, variable or file it was set in."""


def session_configured(resources: RunResources, run_state: RunState, reasons: SessionReasons) -> SessionConfigured:
    """The record of a session that begins.

    Args:
        resources: What it works with.
        run_state: The run so far; its latest session is the one before.
        reasons: What was set, and where.
    """
    plan = plan_search(search_setup(resources.settings))
    confinement = resources.sandbox.confinement
    reader, reader_why = _reader(resources.settings)
    reserve = reserve_for_report(resources.settings, resources.roles, resources.choice)
    session = SessionConfigured(
        pid=os.getpid(),
        host=socket.gethostname(),
        models=_models(resources, run_state, reasons),
        search=plan.engines,
        search_why=plan.why,
        reader=reader,
        reader_why=reader_why,
        shell=str(confinement.tier) if confinement else "",
        shell_why=resources.sandbox.why,
        limits={name: _limit(name, resources, run_state, reasons) for name in Limits.model_fields},
        report_cost_usd=round(reserve.cost_usd, 6),
        report_tokens=reserve.tokens,
    )
    _log(session)
    return session


def _reader(settings: Settings) -> tuple[str, str]:
    """The host of the service that pages are read through, and why; a host alone, for an address can hold a key."""
    host = urlsplit(settings.reader_address).netloc.rpartition("@")[2]
    why = "EXPLORER_READER_URL is set" if settings.services.reader_url else "JINA_API_KEY is set"
    return (host, why) if host else ("", "")


def _models(resources: RunResources, run_state: RunState, reasons: SessionReasons) -> dict[str, ModelInUse]:
    if resources.own_client is not None:
        own = ModelInUse(model=OWN, why="handed in by the program")
        return dict.fromkeys(resources.roles, own)
    chosen = {role: str(ref) for role, ref in resources.choice.models.items()}
    in_use = {
        role: ModelInUse(
            model=model,
            why=_why(role, resources, run_state, reasons),
            effort=effort_of(resources.settings, resources.roles[role]),
            before=_before(role, model, run_state),
        )
        for role, model in chosen.items()
    }
    if resources.judge is None:
        return in_use
    why = _set_by("judge", reasons) or "asked for as the judge"
    return {**in_use, JUDGE: ModelInUse(model=str(resources.judge), why=why)}


def _why(role: str, resources: RunResources, run_state: RunState, reasons: SessionReasons) -> str:
    given = reasons.given
    if role in given.role_models:
        return _set_by(f"role_models.{role}", reasons) or "set for this role"
    if given.model not in {"", "auto"}:
        return _set_by("model", reasons) or resources.choice.why
    if run_state.agents and role in resources.settings.role_models:
        return AS_STARTED
    if resources.settings.model not in {"", "auto"}:
        return AS_STARTED
    if resources.roles[role].model not in set(Tier):
        return "named by its role file"
    return resources.choice.why


def _set_by(name: str, reasons: SessionReasons) -> str:
    return f"set by {reasons.origins[name]}" if name in reasons.origins else ""


def _before(role: str, model: str, run_state: RunState) -> str:
    """The role's model in the session before, where it was another."""
    if run_state.session is not None and role in run_state.session.models:
        before = run_state.session.models[role].model
    elif role in run_state.prefixes:
        before = run_state.prefixes[role].model
    else:
        return ""
    return before if before != model else ""


def _limit(name: str, resources: RunResources, run_state: RunState, reasons: SessionReasons) -> LimitInUse:
    value = getattr(resources.settings.limits, name)
    if name in reasons.given.limits.model_fields_set:
        origin = reasons.origins.get(f"limits.{name}", "set")
    elif name in resources.limit_origins:
        origin = resources.limit_origins[name]
    elif (
        run_state.session is not None
        and name in run_state.session.limits
        and run_state.session.limits[name].value == value
    ):
        origin = run_state.session.limits[name].origin
    else:
        origin = AS_STARTED if run_state.agents else "default"
    return LimitInUse(value=value, origin=origin)


def _log(session: SessionConfigured) -> None:
    """One line each for the log, with all reasons."""
    for role, in_use in session.models.items():
        logger.info("model of {}: {} ({})", role, in_use.model, in_use.why)
    logger.info("web search: {} ({})", ", ".join(session.search) or "none", session.search_why)
    logger.info("page reader: {} ({})", session.reader or "none", session.reader_why or "pages are read directly")
    logger.info("shell: {} ({})", session.shell or "none", session.shell_why)
    limits = (f"{name} {limit.value} ({limit.origin})" for name, limit in session.limits.items())
    logger.info("limits: {}", ", ".join(limits))
