"""Approval rules: which calls of tools are allowed, refused, or put to the user, by tool and argument.

The language follows what users of coding agents know: `ask execute_shell(git push*)`. Rules are read in order, and the
first that fits a call decides; a call that no rule fits is allowed.
"""

import json
import posixpath
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from explorer.schema.messages import Frozen, JsonObject
from explorer.schema.setting import Flag, Group, Setting, ValueFormat, WithoutTrust

RULE = re.compile(r"(allow|ask|deny)\s+([\w*.-]+)(?:\((.+)\))?", re.DOTALL)
NAMED_ARGUMENT = re.compile(r"(\w+): +(.+)", re.DOTALL)
BETWEEN_RULES = re.compile(r"\s*[,;]\s*(?=(?:allow|ask|deny)\s)")
BETWEEN_COMMANDS = re.compile(r"[;&|\n(){}`]+")
"""What can separate commands in a text for a shell. Quotes do not matter: a part too many can only be stricter."""
UNTIDY_PATH = re.compile(r"(?:^|/)\.{1,2}(?:/|$)|//")


class Decision(StrEnum):
    """The result of the rules for a call, the most lenient first."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True)
class ApprovalRule:
    """One rule."""

    text: str
    """The rule as it is written."""
    decision: Decision
    tool: str
    """The name of a tool; `*` in it is any text."""
    argument: str = ""
    """The name of the argument that the pattern is for; empty: the tool's first one."""
    pattern: str = ""
    """The value of the argument; `*` in it is any text. Empty: any call of the tool."""

    def fits(self, tool: str, arguments: Mapping[str, str]) -> bool:
        """Return whether the rule is for a call.

        Args:
            tool: The tool's name.
            arguments: The arguments as texts, in the order in which the tool declares them.
        """
        if not _is_like(tool, self.tool):
            return False
        if not self.pattern:
            return True
        name = self.argument or next(iter(arguments), "")
        return name in arguments and _is_like(arguments[name], self.pattern)


@dataclass(frozen=True)
class RuleResult:
    """The result of the rules for one call."""

    decision: Decision
    rule: str = ""
    """The text of the rule that decided; empty: none fits."""

    @property
    def strictness(self) -> int:
        """The place of the decision among all decisions."""
        return list(Decision).index(self.decision)


ALLOWED = RuleResult(Decision.ALLOW)


@dataclass(frozen=True)
class ApprovalRules:
    """The rules of a session."""

    rules: Sequence[ApprovalRule] = ()
    tightening: Sequence[ApprovalRule] = ()
    """Rules of a folder that is not trusted: they decide only where they are the stricter ones."""

    @classmethod
    def of(cls, rules: Sequence[str], tightening: Sequence[str]) -> "ApprovalRules":
        """Return the rules of texts.

        Raises:
            ValueError: One is not a rule.
        """
        return cls([*map(parse_rule, rules)], [*map(parse_rule, tightening)])

    def verdict(self, tool: str, arguments: JsonObject, *, is_command: bool = False) -> RuleResult:
        """Return the result for a call.

        Args:
            tool: The tool's name.
            arguments: The checked arguments, in the order in which the tool declares them.
            is_command: Whether the first argument is a command for a shell; each of its parts is then judged, too.
        """
        texts = {name: _text(value) for name, value in arguments.items()}
        found = (_first(rules, tool, form) for form in _forms(texts, is_command) for rules in self._lists)
        return max(found, key=lambda verdict: verdict.strictness, default=ALLOWED)

    def concerning(self, tool: str) -> list[str]:
        """Return the texts of the rules that can decide on a tool, in order."""
        found: list[str] = []
        for rules in self._lists:
            for rule in rules:
                if _is_like(tool, rule.tool):
                    found.append(rule.text)
                    if not rule.pattern:
                        break
        return found

    def restricts(self, tool: str) -> bool:
        """Return whether a call of a tool may be refused or asked about."""
        return any(
            rule.decision is not Decision.ALLOW and _is_like(tool, rule.tool) for rules in self._lists for rule in rules
        )

    @property
    def _lists(self) -> list[Sequence[ApprovalRule]]:
        return [rules for rules in (self.rules, self.tightening) if rules]


def parse_rule(text: str) -> ApprovalRule:
    """Return the rule that a text is.

    Raises:
        ValueError: It is none.
    """
    match = RULE.fullmatch(text.strip())
    if match is None or not text.isprintable():
        raise ValueError(text)
    decision, tool, pattern = match[1], match[2], match[3] or ""
    named = NAMED_ARGUMENT.fullmatch(pattern)
    argument, pattern = (named[1], named[2]) if named else ("", pattern)
    return ApprovalRule(" ".join(text.split()), Decision(decision), tool, argument, pattern)


def rule_texts(raw: str) -> tuple[str, ...]:
    """Read rules, separated by `;` or a comma.

    Raises:
        ValueError: One of them is no rule.
    """
    return tuple(parse_rule(part).text for part in BETWEEN_RULES.split(raw.strip(" ,;")) if part.strip())


def _checked(rules: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(parse_rule(rule).text for rule in rules)


RuleTexts = Annotated[tuple[str, ...], AfterValidator(_checked)]
"""Rules as they are written, each of which can be read."""


def _first(rules: Sequence[ApprovalRule], tool: str, arguments: Mapping[str, str]) -> RuleResult:
    rule = next((rule for rule in rules if rule.fits(tool, arguments)), None)
    return ALLOWED if rule is None else RuleResult(rule.decision, rule.text)


def _is_like(text: str, pattern: str) -> bool:
    # Only `*` is special: a path or a query may well have brackets and question marks.
    return fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _forms(arguments: Mapping[str, str], is_command: bool) -> Iterator[Mapping[str, str]]:  # noqa: FBT001
    """Yield a call's arguments as they are, and with each other form of one of them; the strictest result counts.

    So `notes/../keys.txt` is `keys.txt`, and `ls; rm x` is `rm x`, too.
    """
    yield arguments
    for place, (name, text) in enumerate(arguments.items()):
        is_shell = is_command and place == 0
        others = _commands(text) if is_shell else {_tidy(text)}
        for other in sorted(others - {text}):
            yield {**arguments, name: other}


def _commands(text: str) -> set[str]:
    parts = (" ".join(part.split()) for part in BETWEEN_COMMANDS.split(text))
    return {part for part in (*parts, " ".join(text.split())) if part}


def _tidy(text: str) -> str:
    """Return a path without detours, and an address with its host in lower case; any other text as it is."""
    if "://" in text:
        try:
            parts = urlsplit(text)
            return parts._replace(scheme=parts.scheme.lower(), netloc=parts.hostname or "").geturl()
        except ValueError:
            return text
    return posixpath.normpath(text) if UNTIDY_PATH.search(text) else text


class ApprovalRequest(Frozen):
    """A call that somebody has to approve."""

    agent: str
    """The agent that wants to make it, such as `searcher-2`."""
    role: str
    call: str
    """The call's key: unique in the run, and the same when a resumed run asks again."""
    tool: str
    arguments: JsonObject
    """The arguments that the agent gave, checked."""
    rule: str
    """The rule that asks."""


class Approval(Frozen):
    """The answer to a request."""

    is_allowed: bool
    for_run: bool = False
    """Whether the same answer holds whenever this rule asks about this tool, until the run ends."""
    words: str = ""
    """The reason, for the agent."""


Approve = Callable[[ApprovalRequest], Awaitable[Approval | bool | None]]
"""Answers a request; None: nobody is there to answer."""


APPROVAL_RULES = ValueFormat(
    rule_texts, "rules like `ask execute_shell(git push*)`: allow, ask or deny, a tool, and a pattern of its argument"
)

ApprovalRulesSetting = Annotated[
    RuleTexts,
    Setting(
        "EXPLORER_APPROVAL_RULES",
        APPROVAL_RULES,
        "Which calls of tools are allowed, refused, or put to you: `ask execute_shell(git push*); deny mcp__*`",
        Group.MODELS,
        flags=(Flag("--approval", "RULE", "Repeatable"),),
        details="The first rule that fits decides; all origins together",
        anchor="approval-rules",
        without_trust=WithoutTrust.TIGHTENS,
    ),
]
