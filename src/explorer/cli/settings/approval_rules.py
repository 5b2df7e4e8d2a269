"""Approval rules of all origins together: they add to each other, and those of an untrusted folder only tighten."""

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.cli.settings.layers import Layer
from explorer.cli.settings.resolve import parsed
from explorer.cli.settings.values import Origin, Raw, Value, setting_named
from explorer.schema.approvals import rule_texts

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
