"""The settings of a resumed run: what it was started with, but for what is set explicitly now."""

from typing import Any

from pydantic import BaseModel

from explorer.journal.run_state import RunState
from explorer.llm.models import AUTO, OFFLINE
from explorer.llm.vendors import with_prefix
from explorer.run.carried import harmless
from explorer.run.extensions import installed_extensions
from explorer.run.resources import LEAN_ROLE, load_roles
from explorer.schema.errors import ConfigError
from explorer.schema.network import LEFT_OUT, secrets_in
from explorer.schema.services import Services
from explorer.schema.settings import Settings


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
    """See that the vendors of the models that the run keeps are installed.

    Raises:
        ConfigError: One is not, so its models' prefix would be taken for a part of their names.
    """
    session = run_state.session.models.values() if run_state.session else ()
    recorded = {*(run_state.model_of(role) for role in run_state.prefixes), *(one.model for one in session)}
    vendors = installed_extensions().vendors.values()
    for model in sorted(recorded & {settings.model, settings.judge, *settings.role_models.values()}):
        prefix, colon, _ = model.partition(":")
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
