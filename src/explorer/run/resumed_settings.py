"""The settings of a resumed run: those that it was started with, unless set explicitly now, or carried here.

A run is the user's own when its journal proves it (`journal/codec.py`). Any other one may come from anybody: from an
archive, a repository, a folder that several people share. It continues with the settings of this invocation.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel

from explorer.journal.run_state import RunState
from explorer.llm.models import AUTO, OFFLINE, OWN
from explorer.llm.vendors import with_prefix
from explorer.run.extensions import installed_extensions
from explorer.run.team import LEAN_ROLE, load_roles
from explorer.schema.errors import ConfigError
from explorer.schema.events import ToolFinished
from explorer.schema.messages import JsonObject
from explorer.schema.model_options import EVERY_ROLE
from explorer.schema.network import LEFT_OUT, secrets_in
from explorer.schema.services import Services
from explorer.schema.settings import Settings
from explorer.schema.tool import Effect, Tool
from explorer.text.sanitize import single_line

HARMLESS = ("model", "role_models", "effort", "language", "timezone", "is_sample")
"""The settings that are taken from the journal of any run: they name no place, no key and no limit."""
UNREMARKABLE = frozenset({*HARMLESS, "workspace", "files", "since_run"})
"""Settings of which nothing is said when they are not taken."""
SHOWN_CHARS = 40
MAX_SHOWN = 12
"""How many settings are listed that were not taken."""
EFFECTS = frozenset({Effect.JOB, Effect.EXTERNAL, Effect.REPEATABLE})
"""Effects outside the run's folder: a call that somebody else's model asked for has none of them."""
PENDING = (
    "This call was interrupted and was not made: it was pending when the run was brought here from elsewhere. "
    "Make it again if it is still needed."
)


def harmless(recorded: Mapping[str, object], now: Settings) -> JsonObject:
    """Return what a session takes of the settings in the journal of a run that was carried here."""
    kept = {name: recorded[name] for name in HARMLESS if name in recorded}
    known = {*load_roles(now), EVERY_ROLE}
    for name in ("role_models", "effort"):
        by_role = kept.get(name)
        if isinstance(by_role, dict):
            roles = cast("dict[str, object]", by_role)
            kept[name] = {role: value for role, value in roles.items() if role in known}
    return kept


def not_taken(recorded: Mapping[str, object], used: Settings) -> dict[str, str]:
    """Return the settings in a carried run's journal that this session does not use, by name, as short texts."""
    default, now = _flat(Settings().public()), _flat(used.public())
    found = {
        name: single_line(_text(value), SHOWN_CHARS)
        for name, value in sorted(_flat(recorded).items())
        if name.partition(".")[0] not in UNREMARKABLE and value != now.get(name) and value != default.get(name)
    }
    return dict(list(found.items())[:MAX_SHOWN])


def _flat(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings by name, those in a group as `limits.max_steps`."""
    flat: dict[str, object] = {}
    for name, value in settings.items():
        if name in {"limits", "services"} and isinstance(value, dict):
            group = cast("dict[str, object]", value)
            flat |= {f"{name}.{single_line(str(leaf), SHOWN_CHARS)}": one for leaf, one in group.items()}
        elif name == "preset" and isinstance(value, dict):
            flat[name] = cast("dict[str, object]", value).get("name")
        elif name in Settings.model_fields:
            flat[name] = value
    return flat


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in cast("list[object]", value)) or "none"
    return "none" if value in {None, ""} else str(value)


def pending_effects(run_state: RunState, tools: Mapping[str, Tool]) -> Iterator[ToolFinished]:
    """Yield a result for each call with an effect outside the run's folder that a carried run has not finished."""
    for state in list(run_state.agents.values()):
        for call in state.calls() if state.open_turn is not None else ():
            tool = tools.get(call.call.name)
            if call.finished is None and tool is not None and tool.effect in EFFECTS:
                yield ToolFinished(
                    agent=state.agent, call=call.key, name=call.call.name, success=False, content=PENDING
                )


def as_started(now: Settings, run_state: RunState, *, is_own: bool) -> Settings:
    """Return the settings of a resumed run, as recorded at its start, but for what is set explicitly now.

    Models stay the ones each role had in the session before, efforts the ones it was loaded with, unless others are
    asked for. The stand-in for a model stays only where it was asked for: a run that had none goes on with the first
    model there is. Of a carried run, only what grants nothing is taken.

    Raises:
        ConfigError: What is recorded is not understood.
    """
    assert run_state.started is not None
    first = run_state.started.settings
    recorded = Settings.recorded(first if is_own else harmless(first, now))
    explicit = _explicit(now)
    limits = recorded.limits.model_copy(update=_explicit(now.limits))
    # Of an address with a secret in it, such as a collector's, the journal has only a part that leads nowhere.
    addresses = _explicit(recorded.services).items()
    whole = {name: value for name, value in addresses if LEFT_OUT not in secrets_in(str(value))}
    services = Services(**(whole | _explicit(now.services)))
    loaded = {} if explicit.get("model", "auto") != "auto" else _pinned(recorded, run_state)
    efforts = {role: head.effort for role, head in run_state.prefixes.items() if head.effort}
    if not is_own:
        known = load_roles(now)
        loaded, efforts = ({role: one for role, one in each.items() if role in known} for each in (loaded, efforts))
    role_models = {**recorded.role_models, **loaded, **now.role_models}
    kept: dict[str, Any] = {
        "limits": limits,
        "services": services,
        "role_models": role_models,
        "secrets": now.secrets,
        "network": now.network,
        "cache_dir": now.cache_dir,
        "state_dir": now.state_dir,
        "mcp": now.mcp,
        "approval_rules": _both(now.approval_rules, recorded.approval_rules),
        "tightening_rules": _both(now.tightening_rules, recorded.tightening_rules),
        "skill_folders": now.skill_folders,
    }
    if "effort" not in explicit:
        kept["effort"] = {**recorded.effort, **efforts}
    if run_state.prefixes:
        kept["lean"] = "on" if LEAN_ROLE in run_state.prefixes else "off"
    return recorded.model_copy(update={**explicit, **kept})


def _both(now: tuple[str, ...], recorded: tuple[str, ...]) -> tuple[str, ...]:
    """Return approval rules given now, and after them those that the run was started with: they add to each other."""
    return tuple(dict.fromkeys((*now, *recorded)))


def check_vendors(settings: Settings, run_state: RunState) -> None:
    """Check that what answers for the models that the run keeps is there: their vendors, and no program's own client.

    Raises:
        ConfigError: It is not, so that a vendor would be asked that the run was never meant for.
    """
    session = run_state.session.models.values() if run_state.session else ()
    recorded = {*(run_state.model_of(role) for role in run_state.prefixes), *(one.model for one in session)}
    vendors = installed_extensions().vendors.values()
    for model in sorted(recorded & {settings.model, settings.judge, *settings.role_models.values()}):
        prefix, colon, _ = model.partition(":")
        if model == OWN:
            message = "the run is answered by a client of the program that started it"
            hint = "give it the client: resume(run, client=...); or another model: --model NAME"
            raise ConfigError(message, hint=hint)
        if colon and with_prefix(vendors, prefix) is None:
            message = f"the run asks {model}, and no vendor of models called {prefix!r} is installed"
            hint = f"install the package that adds {prefix!r} (explorer doctor lists packages), or use --model NAME"
            raise ConfigError(message, hint=hint)


def _pinned(recorded: Settings, run_state: RunState) -> dict[str, str]:
    """Return the models that roles keep."""
    models = {role: run_state.model_of(role) for role in run_state.prefixes}
    if recorded.model not in {"", AUTO}:
        return models
    return {role: model for role, model in models.items() if model != OFFLINE}


def _explicit(settings: BaseModel) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.model_fields_set}
