"""What a session of a run works with, as data: models, search engine, shell and limits, each with its reason."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from loguru import logger

from explorer.journal.fold import Fold
from explorer.run.equipment import JUDGE, Equipment, effort_of, reserve_for_report
from explorer.run.settings_parts import search_setup
from explorer.schema.events import LimitInUse, ModelInUse, SessionConfigured
from explorer.schema.limits import Limits
from explorer.schema.model_options import Tier
from explorer.schema.settings import Settings
from explorer.sources.search.choose_search import plan_search

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


def session_configured(equipment: Equipment, fold: Fold, reasons: SessionReasons) -> SessionConfigured:
    """The record of a session that begins.

    Args:
        equipment: What it works with.
        fold: The run so far; its latest session is the one before.
        reasons: What was set, and where.
    """
    plan = plan_search(search_setup(equipment.settings))
    confinement = equipment.sandbox.confinement
    reader, reader_why = _reader(equipment.settings)
    reserve = reserve_for_report(equipment.settings, equipment.roles, equipment.choice)
    session = SessionConfigured(
        pid=os.getpid(),
        host=socket.gethostname(),
        models=_models(equipment, fold, reasons),
        search=plan.engines,
        search_why=plan.why,
        reader=reader,
        reader_why=reader_why,
        shell=str(confinement.tier) if confinement else "",
        shell_why=equipment.sandbox.why,
        limits={name: _limit(name, equipment, fold, reasons) for name in Limits.model_fields},
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


def _models(equipment: Equipment, fold: Fold, reasons: SessionReasons) -> dict[str, ModelInUse]:
    if equipment.own_client is not None:
        own = ModelInUse(model=OWN, why="handed in by the program")
        return dict.fromkeys(equipment.roles, own)
    chosen = {role: str(ref) for role, ref in equipment.choice.models.items()}
    in_use = {
        role: ModelInUse(
            model=model,
            why=_why(role, equipment, fold, reasons),
            effort=effort_of(equipment.settings, equipment.roles[role]),
            before=_before(role, model, fold),
        )
        for role, model in chosen.items()
    }
    if equipment.judge is None:
        return in_use
    why = _set_by("judge", reasons) or "asked for as the judge"
    return {**in_use, JUDGE: ModelInUse(model=str(equipment.judge), why=why)}


def _why(role: str, equipment: Equipment, fold: Fold, reasons: SessionReasons) -> str:
    given = reasons.given
    if role in given.role_models:
        return _set_by(f"role_models.{role}", reasons) or "set for this role"
    if given.model not in {"", "auto"}:
        return _set_by("model", reasons) or equipment.choice.why
    if fold.agents and role in equipment.settings.role_models:
        return AS_STARTED
    if equipment.settings.model not in {"", "auto"}:
        return AS_STARTED
    if equipment.roles[role].model not in set(Tier):
        return "named by its role file"
    return equipment.choice.why


def _set_by(name: str, reasons: SessionReasons) -> str:
    return f"set by {reasons.origins[name]}" if name in reasons.origins else ""


def _before(role: str, model: str, fold: Fold) -> str:
    """The role's model in the session before, where it was another."""
    if fold.session is not None and role in fold.session.models:
        before = fold.session.models[role].model
    elif role in fold.heads:
        before = fold.heads[role].model
    else:
        return ""
    return before if before != model else ""


def _limit(name: str, equipment: Equipment, fold: Fold, reasons: SessionReasons) -> LimitInUse:
    value = getattr(equipment.settings.limits, name)
    if name in reasons.given.limits.model_fields_set:
        origin = reasons.origins.get(f"limits.{name}", "set")
    elif name in equipment.limit_origins:
        origin = equipment.limit_origins[name]
    elif fold.session is not None and name in fold.session.limits and fold.session.limits[name].value == value:
        origin = fold.session.limits[name].origin
    else:
        origin = AS_STARTED if fold.agents else "default"
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
