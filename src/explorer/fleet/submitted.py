"""The settings of a run of the fleet: what was submitted with it, within what its worker allows."""

import json
from typing import Any

from explorer.schema.limits import Limits
from explorer.schema.messages import JsonObject
from explorer.schema.settings import Settings

PLANS = frozenset({"plan", "initial_queries", "max_rounds", "reflect"})
SUBMITTED = PLANS | {"model", "role_models", "effort", "language", "judge", "is_sample", "lean", "library"}
"""Settings, besides the limits, that a submission may have: what it asks for, and nothing of its machine."""


def submitted(settings: Settings) -> JsonObject:
    """Return what was set explicitly, of what a submission may have, as JSON."""
    public: dict[str, Any] = settings.public()
    chosen = {name: public[name] for name in sorted(settings.model_fields_set & SUBMITTED)}
    limits = {name: public["limits"].get(name) for name in sorted(settings.limits.model_fields_set)}
    return {**chosen, "limits": limits} if limits else chosen


def settings_of(submission: str, own: Settings) -> Settings:
    """Return the settings for a run.

    Args:
        submission: What was submitted with it, as JSON.
        own: The worker's, whose limits are never exceeded.

    Raises:
        ConfigError: What was submitted is not understood here.
    """
    asked = Settings.recorded(json.loads(submission))
    chosen = {name: getattr(asked, name) for name in asked.model_fields_set & SUBMITTED}
    return own.model_copy(update=chosen | {"limits": _lower(own.limits, asked.limits)})


def _lower(own: Limits, asked: Limits) -> Limits:
    """Return the lower of two limits each; one that neither sets stays unset."""
    values: dict[str, float | None] = {}
    for name in own.model_fields_set | asked.model_fields_set:
        pair = (getattr(own, name), getattr(asked, name) if name in asked.model_fields_set else None)
        set_ones = [one for one in pair if one is not None]
        values[name] = min(set_ones) if set_ones else None
    return Limits.model_validate(values)
