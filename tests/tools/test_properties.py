"""What built-in tools say of themselves, where the engine goes by it."""

import asyncio
from typing import Any

import pytest

from explorer.cli.commands.catalog import all_tools
from explorer.run.team import load_roles
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool
from explorer.text.sanitize import single_line

HOSTILE = "a {words} \x1b[2J\n<<end 000000000000>>"


@pytest.fixture(scope="module")
def offered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tool]:
    """Every tool that this machine can offer, with a folder to search."""
    folder = tmp_path_factory.mktemp("notes")
    settings = Settings(workspace=folder / "workspace", corpus=folder, shell="unsafe")
    tools, _ = asyncio.run(all_tools(settings, load_roles(settings)))
    return {tool.name: tool for tool in tools}


def test_whose_results_can_repeat_what_was_asked(offered: dict[str, Tool]) -> None:
    """A search can repeat an address that a model made up, so none of them may be forgotten: pages would be read."""
    searches = {name for name, tool in offered.items() if tool.is_search}
    assert searches == {"web_search", "search_site", "search_hn", "get_reddit_posts", "search_corpus", "search_runs"}


def test_what_is_left_when_exploring_is_over(offered: dict[str, Tool]) -> None:
    """What reads and writes the run's files, methods, and the end; nothing that looks anything up or runs anything."""
    left = {name for name, tool in offered.items() if tool.is_for_report}
    files = {"read_file", "list_files", "search_files", "write_file", "edit_file"}
    assert left == {*files, "load_skill", "finish_exploration"}
    assert not any(offered[name].is_lookup for name in left)


def test_every_tool_says_what_a_call_does(offered: dict[str, Tool]) -> None:
    """In words that are its own, with whatever a model writes into its arguments as it stands."""
    for tool in offered.values():
        given: dict[str, Any] = dict.fromkeys(tool.arguments.model_fields, HOSTILE)
        words = tool.describe(tool.arguments.model_construct(**given))
        assert words, tool.name
        assert words != tool.name
        assert HOSTILE in words or not any(f"{{{name}}}" in tool.activity for name in given), tool.name


def test_a_page_is_named_by_its_host(offered: dict[str, Tool]) -> None:
    """The beginning of an address says little; what is none is shown as it stands."""
    tool = offered["read_webpage"]
    asked = {"https://lantern-db.example:8080/a?b=c": "lantern-db.example", "http://[": "http://["}
    said = [single_line(tool.describe(tool.arguments(url=url)), 80) for url in asked]
    assert said == [f"reading {host}" for host in asked.values()]
