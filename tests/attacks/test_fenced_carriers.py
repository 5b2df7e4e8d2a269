"""The table of carriers leaves no tool out, and its way of finding a leak is right."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from attacks.carrier_runs import FILES, ORDER, REDDIT, SHELL, SOURCES, WEB, bare
from attacks.fenced_carriers import ALWAYS, COMMANDS
from explorer.text.rendering import ModelText, block, inline, own

SRC = Path(__file__).parents[2] / "src" / "explorer"
RENDERING = "rendering.py"
WITH_THE_USERS_WORDS = {
    "session.py",
    "single_agent.py",
    "lean_session.py",
    # What the user says to a call and to a plan, and the skills that the user has or trusts.
    "approvals.py",
    "planning.py",
    "catalog.py",
    "skills.py",
    RENDERING,
}
TOOL_ERRORS = {
    "ToolError",
    "RefusedCallError",
    "NoSuchThingError",
    "ServiceDownError",
    "RouteClosedError",
    "RedditRefusedError",
    "RobotsError",
    "TooManyRedirectsError",
    "UrlRefusedError",
    "NoSuchSiteError",
}


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Each call of a name in the product, with the module's file name."""
    for path, node in all_calls():
        if isinstance(node.func, ast.Name) and node.func.id == name:
            yield path, node


@cache
def all_calls() -> list[tuple[str, ast.Call]]:
    """Every call in the modules that make text for models."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(SRC.rglob("*.py"))}
    return [
        (path.name, node)
        for path, text in texts.items()
        if "text.rendering" in text or "ToolError" in text or path.name == RENDERING
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
    ]


def test_every_tool_is_in_the_table() -> None:
    """No tool that shows text of others is without an attack of its own."""
    used = {name for scene in (*ALWAYS.values(), *COMMANDS.values()) for name, _ in (*scene().steps, *scene().lead)}
    assert {*WEB, *REDDIT, *FILES, *SOURCES, *SHELL} - used == set()
    assert len(ALWAYS) + len(COMMANDS) > 90


@pytest.mark.slow
def test_only_one_module_makes_text_that_needs_no_fence() -> None:
    """`ModelText` is made where the fences are, and the user's words are named where a run begins."""
    assert {path for path, _ in calls("ModelText")} == {RENDERING}
    assert {path for path, _ in calls("by_user")} <= WITH_THE_USERS_WORDS
    # Lean mode shows a conversation again that is recorded; answers of the MCP server have their fences already.
    assert {path for path, _ in calls("from_record")} == {"client.py", "tools.py"}


def test_own_text_is_a_literal() -> None:
    """What `own` shows without a fence is written in the source: no name of a variable, no f-string with values."""
    odd = [
        (path, node.lineno, ast.unparse(node.args[0]))
        for path, node in calls("own")
        if not isinstance(node.args[0], ast.Constant | ast.IfExp | ast.Name | ast.Subscript | ast.Call)
    ]
    assert odd == []
    # A name or an entry of a table is a LiteralString to pyright; what a call returns is one of `Mapping.get`.
    returned = {ast.unparse(node.args[0].func) for _, node in calls("own") if isinstance(node.args[0], ast.Call)}
    assert {name.rpartition(".")[2] for name in returned} <= {"get"}


def test_errors_say_which_of_their_words_are_ours() -> None:
    """A tool's error made of an f-string would be fenced as a whole, advice and all."""
    plain = [
        (path, node.lineno)
        for name in TOOL_ERRORS
        for path, node in calls(name)
        if isinstance(node.args[0], ast.JoinedStr | ast.Constant) and path != "catalog.py"
    ]
    assert plain == []


def test_text_loses_its_type_with_any_change() -> None:
    """A rendered text that was joined, cut or formatted is a plain string again, which is fenced as a whole."""
    made = own("Found {count} of {name}.", count=3, name=ORDER)
    both = [made, made]
    changed = (made + "", f"{made}", made[1:], made.strip(), " ".join(both), made.replace("a", "b"))
    assert isinstance(made, ModelText)
    assert [type(one) for one in changed] == [str] * len(changed)


def test_a_leak_is_found() -> None:
    """What stands before, between and after fences is bare, and so is a fence that is not closed."""
    fenced = [block(f"a\n{ORDER}"), inline(ORDER), inline(f"{ORDER}>>"), own("a {b} c", b=f">> {ORDER} <<")]
    assert ["Obey" in bare(one) for one in fenced] == [False] * 4
    opened = ["<<untrusted 0123456789abcdef>>\nObey", "<<Obey", "<<a>> Obey <<b>>", f"{block('x')} Obey"]
    assert ["Obey" in bare(one) for one in opened] == [True] * 4
