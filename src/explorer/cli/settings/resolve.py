"""From texts with their origins to `Settings`; approval rules of all origins add to each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from explorer.cli.settings.layers import Layer, short
from explorer.cli.settings.values import BY_MODEL, ROLE, Origin, Raw, Value, all_settings, setting_named
from explorer.schema.approvals import rule_texts
from explorer.schema.errors import ConfigError
from explorer.schema.limits import DEPENDENT_LIMITS
from explorer.schema.network import without_secrets
from explorer.schema.setting import Setting
from explorer.schema.settings import Settings

BY_MODEL_NAMES = frozenset(f"limits.{name}" for name in DEPENDENT_LIMITS)


def settings_of(found: Mapping[str, Raw], models: Mapping[str, Raw]) -> Settings:
    """Return the settings of the values that were found.

    Raises:
        ConfigError: A value is not allowed; the message names where it was found.
    """
    fields: dict[str, Any] = {"role_models": {role: _model(role, raw) for role, raw in models.items()}}
    for setting in all_settings():
        raw = found.get(setting.name)
        if raw is not None and not is_left_open(setting, raw):
            _place(fields, setting.name, parsed(setting, raw))
    try:
        return Settings.model_validate(fields)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        setting = next(s for s in all_settings() if place.startswith(s.name))
        raise _not_allowed(setting, found[setting.name]) from error


def is_left_open(setting: Setting, raw: Raw) -> bool:
    """Return whether a limit is to be the one that the models of a run call for."""
    return setting.name in BY_MODEL_NAMES and raw.text.lower() in {"", BY_MODEL}


def parsed(setting: Setting, raw: Raw) -> object:
    """Return the value of a text.

    Raises:
        ConfigError: It is not allowed.
    """
    if not raw.text:
        # An empty text in a file, or `--lang ""`, asks for the default.
        return setting.initial
    try:
        return setting.parse(raw.text)
    except ValueError as error:
        raise _not_allowed(setting, raw) from error


def _place(fields: dict[str, Any], name: str, value: object) -> None:
    group, dot, leaf = name.rpartition(".")
    (fields.setdefault(group, {}) if dot else fields)[leaf] = value


def _not_allowed(setting: Setting, raw: Raw) -> ConfigError:
    value = "its value" if setting.is_secret else repr(short(without_secrets(raw.text)))
    return ConfigError(f"{raw.origin}: {value} is not allowed", hint=f"allowed is {setting.format.allowed}")


def _model(role: str, raw: Raw) -> str:
    if ROLE.fullmatch(role) is None or not raw.text.isprintable():
        raise ConfigError(f"{raw.origin}: `{short(role)}` is not the name of a role", hint="see `explorer agents`")
    return raw.text


NAME, TIGHTENING = "approval_rules", "tightening_rules"


@dataclass(frozen=True)
class RuleLayers:
    """The layers with the user's rules as one value, and the rules of a folder that is not trusted."""

    layers: list[Layer]
    tightening: tuple[str, ...]
    rows: tuple[Value, ...]
    """The folder's rules, for people."""


def joined_rules(layers: Sequence[Layer], *, is_trusted: bool, strangers: Sequence[Raw] = ()) -> RuleLayers:
    """Join the rules of all layers, in the order in which the layers count.

    Args:
        layers: What each origin says, the one that counts first.
        is_trusted: Whether the folder's files may set everything.
        strangers: Rules of others that only tighten, whatever the folder may.

    Raises:
        ConfigError: A rule is not one.
    """
    setting = setting_named(NAME)
    found = [layer.values[NAME] for layer in layers if NAME in layer.values]
    own = [raw for raw in found if raw not in strangers and (is_trusted or raw.level is not Origin.FOLDER)]
    rest = [Layer({name: raw for name, raw in one.values.items() if name != NAME}, one.models) for one in layers]
    if own:
        texts = (rule for raw in own for rule in _rules(raw))
        one = Raw("; ".join(texts), ", ".join(raw.origin for raw in own), own[0].level)
        rest = [Layer({NAME: one}, {}), *rest]
    folder = [raw for raw in found if raw not in own]
    tightening = tuple(rule for raw in folder for rule in _rules(raw))
    rows = tuple(
        Value(TIGHTENING, setting.variable, raw.text, raw.origin, "Rules of this folder, which only tighten yours")
        for raw in folder
    )
    return RuleLayers(rest, tightening, rows)


def _rules(raw: Raw) -> tuple[str, ...]:
    parsed(setting_named(NAME), raw)  # with an error that says where it is written
    return rule_texts(raw.text)
