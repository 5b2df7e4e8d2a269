"""A rule that a vendor's real server enforces, written so that a loopback server can enforce it, too.

The servers in `model_servers.py` check every request against the rules of their wire and refuse a violation in the
vendor's own words. `test_vendor_rules.py` shows for each rule that it is enforced; `table.py` prints rule by adapter.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

JsonObject = dict[str, Any]


@dataclass
class Asked:
    """One request as it came over HTTP."""

    body: JsonObject
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """Names in lower case."""
    noted: dict[str, Any] = field(default_factory=dict[str, Any])
    """What one rule's check found out and another one's needs, too."""


@dataclass(frozen=True)
class Refusal:
    """What the vendor answers to a violation."""

    message: str
    status: int = 400
    kind: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None


@dataclass(frozen=True)
class Rule:
    """One rule, its source, how it is checked, and how a valid request is made to break it."""

    id: str
    """A letter for the vendor and a number, e.g. `A1`; stable, because docs and tests name it."""
    says: str
    """The rule in one sentence."""
    source: str
    """Where the vendor, its SDK or a recorded answer says so."""
    check: Callable[[Asked], Refusal | None]
    """The refusal for a request that breaks the rule; None for one that keeps it."""
    violate: Callable[[Asked], None]
    """Changes a valid request so that it breaks this rule."""
    applies: Callable[[Asked], bool] = lambda _asked: True
    """Whether a request could break the rule at all; the table counts these."""


@dataclass(frozen=True)
class RuleSet:
    """The rules of one wire, or of one vendor's dialect of it."""

    name: str
    """As the table shows it, e.g. `Anthropic Messages`."""
    rules: Sequence[Rule]
    valid: Callable[[], Asked]
    """A request that keeps all of them and to which every rule applies, as far as one request can do that."""

    def first_broken(self, asked: Asked) -> tuple[Rule, Refusal] | None:
        """Return the first rule that a request breaks, with the answer; None when it keeps all."""
        for rule in self.rules:
            refusal = rule.check(asked)
            if refusal is not None:
                return rule, refusal
        return None

    def violating(self, rule: Rule) -> Asked:
        """Return a request that breaks one rule."""
        asked = copy.deepcopy(self.valid())
        rule.violate(asked)
        return asked


NO_RULES = RuleSet("no rules", (), lambda: Asked({}))


def by_id(rules: RuleSet) -> Mapping[str, Rule]:
    """Return the rules of a set by their ids."""
    return {rule.id: rule for rule in rules.rules}
