"""Runs that were carried here: what their journals say is not the user's word, so they get no privilege by it.

A run is the user's own when its journal proves it (`journal/marks.py`). Any other one may come from anybody: from an
archive, a repository, a folder that several people share. It continues with the settings of this invocation.
"""

from collections.abc import Iterator, Mapping
from typing import cast

from explorer.journal.run_state import RunState
from explorer.run.resources import load_roles
from explorer.schema.events import ToolFinished
from explorer.schema.messages import JsonObject
from explorer.schema.model_options import EVERY_ROLE
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
