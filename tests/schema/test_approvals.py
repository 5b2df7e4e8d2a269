"""Approval rules: what they fit, the order in which they count, and what cannot get past them."""

import re

import pytest

from explorer.schema.approvals import ApprovalRules, Decision, parse_rule, rule_texts

GIT = ("allow execute_shell(git *)", "ask execute_shell")


def verdict(rules: tuple[str, ...], tool: str, tightening: tuple[str, ...] = (), **arguments: object) -> Decision:
    """The decision of some rules about a call."""
    is_command = tool == "execute_shell"
    return ApprovalRules.of(rules, tightening).verdict(tool, arguments, is_command=is_command).decision


def test_the_first_rule_that_fits_decides() -> None:
    """Tools by name or pattern, the first argument or a named one; a call that no rule fits is allowed."""
    rules = ("allow read_*", "deny write_file(*.py)", "ask write_file(mode: overwrite)", "deny mcp__bank__*")
    assert verdict(rules, "read_file", filepath="a.py") is Decision.ALLOW
    assert verdict(rules, "write_file", filepath="a.py", mode="overwrite") is Decision.DENY
    assert verdict(rules, "write_file", filepath="a.md", mode="overwrite") is Decision.ASK
    assert verdict(rules, "write_file", filepath="a.md", mode="create") is Decision.ALLOW
    assert verdict(rules, "mcp__bank__pay") is Decision.DENY
    assert verdict(("ask get(limit: 7)",), "get", limit=7) is Decision.ASK
    assert verdict(("ask search(what [is]?)",), "search", query="what [is]?") is Decision.ASK
    assert verdict(("ask search(what [is]?)",), "search", query="what ix") is Decision.ALLOW


@pytest.mark.parametrize(
    "command",
    ["git log; rm x", "git log && rm x", "git log | sh", "git $(rm x)", "git `rm x`", "git log\nrm x", "rm x"],
)
def test_each_part_of_a_command_is_judged(command: str) -> None:
    """What allows one program allows no other one next to it."""
    assert verdict(GIT, "execute_shell", command="git log --oneline") is Decision.ALLOW
    assert verdict(GIT, "execute_shell", command=command) is Decision.ASK
    assert verdict(("deny execute_shell(rm *)",), "execute_shell", command="ls;  rm \t x") is Decision.DENY


def test_other_spellings_are_judged_too() -> None:
    """A path with detours is the path it leads to, and a host has no capitals."""
    rules = ("deny read_file(keys/*)", "allow read_file(notes/*)", "deny read_file")
    assert verdict(rules, "read_file", filepath="notes/a.md") is Decision.ALLOW
    assert verdict(rules, "read_file", filepath="notes/../keys/a") is Decision.DENY
    assert verdict(("deny read_file(keys/*)",), "read_file", filepath="./keys//a") is Decision.DENY
    assert verdict(("deny read_webpage(https://a.example/*)",), "read_webpage", url="HTTPS://A.Example:443/x") is (
        Decision.DENY
    )


def test_a_strangers_rules_only_tighten() -> None:
    """They add refusals and questions; what they allow, the user's rules may still refuse."""
    assert verdict(("deny x",), "x", tightening=("allow x",)) is Decision.DENY
    assert verdict(("deny x",), "x", tightening=("ask x",)) is Decision.DENY
    assert verdict(("allow x",), "x", tightening=("ask x",)) is Decision.ASK
    assert verdict((), "y", tightening=("allow x", "deny *")) is Decision.DENY


def test_a_list_of_rules_is_split_between_rules_only() -> None:
    """A pattern may have the separators in it; what is no rule is refused."""
    assert rule_texts("ask execute_shell(a; b, c), deny  x ;allow *;") == (
        "ask execute_shell(a; b, c)",
        "deny x",
        "allow *",
    )
    assert rule_texts("") == ()
    for text in ("-", "maybe x", "ask", "ask x(", "ask x()", "ask x y", "ask x(\x1b)", "ask x; deny y"):
        with pytest.raises(ValueError, match=re.escape(text)):
            parse_rule(text)
