"""`get_comments`: one tool for the discussions of both services."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from explorer.schema.errors import ToolError
from explorer.sources.reddit.reddit import Access, Reddit
from explorer.tools.comments import GetCommentsTool
from sources.hn_site import client, hn_routes
from sources.loopback import Ledger, open_plain_web, serving, unfenced
from sources.reddit_site import SECRET, SHELL, access_of, api_routes, archive_routes, open_reddit, post
from tool_call import call_tool


@asynccontextmanager
async def open_tool(*, is_up: bool = True) -> AsyncGenerator[GetCommentsTool]:
    """The tool over small services of our own; both can be down."""
    routes = hn_routes() if is_up else hn_routes(has_tree=False, has_items=False)
    routes |= api_routes() if is_up else {"/comments/p1": SHELL}
    with serving(routes) as site:
        async with (
            open_plain_web() as web,
            Reddit.open(access_of(web), Access(site.url, "app", SECRET)) as reddit,
        ):
            yield GetCommentsTool(client(web, site), reddit)


async def test_reddit() -> None:
    """A thread of Reddit: the post's own words, then comments by level with points, removed ones marked."""
    ledger = Ledger()
    async with open_tool() as tool:
        result = await call_tool(tool, ledger.context, platform="reddit", post_id="t3_p1", limit=4, depth=3)
    lines = result.content.splitlines()
    assert lines[0] == 'Comments on [S1] "Kites & lines 1" (Reddit post p1, r/kites) through its API: 4 of 9 shown.'
    assert lines[1] == (
        "Read on with offset=3 (further top-level comments), or post_id=p1/c1 (2 more replies), "
        "or post_id=p1/c11 (1 more), or post_id=p1/c3 (1 more)."
    )
    assert unfenced(result.content).splitlines() == [
        "10 points, by ada, 2026-08-09T04:00:00Z",
        "Text of the post: Which line?",
        "- bo (2026-08-09T04:01:00Z, 5 points, id c1): Words of c1",
        "  - bo (2026-08-09T04:01:00Z, 5 points, id c11): Words of c11",
        "- [deleted] (id c2)",
        "- [removed] (id c3)",
    ]
    stored = ledger.text("S1")
    assert "kind: comments" in stored
    assert "via: reddit-api" in stored
    assert unfenced(result.content) in stored


async def test_below_a_comment_of_reddit() -> None:
    """What a thread's line says can be asked for, and is a source at the comment's own address."""
    ledger = Ledger()
    async with open_tool() as tool:
        result = await call_tool(tool, ledger.context, platform="reddit", post_id="p1/c11")
    assert result.content.splitlines()[0].endswith("through its API: 1 of 1 shown under comment c11.")
    assert unfenced(result.content).splitlines()[1].startswith("  - bo (")
    assert "url: https://www.reddit.com/r/kites/comments/p1/kites_lines_1/c11/" in ledger.text("S1")


async def test_reddit_through_the_archive() -> None:
    """Without a key the head says that it is the archive's thread, and what that lacks."""
    archive = archive_routes([post(1)])
    with serving({"/comments/p1": SHELL} | archive) as site:
        async with open_reddit(site) as reddit, open_plain_web() as web:
            tool = GetCommentsTool(client(web, site), reddit)
            content = (await call_tool(tool, Ledger().context, platform="reddit", post_id="https://redd.it/p1")).content
    first, second, third, fourth, *_ = content.splitlines()
    assert " through the archive (scores not fresh): 4 of 4 shown." in first
    assert "36 hours" in second
    assert third.startswith("Not taken: the API: ")
    assert fourth == "Read on with offset=3 (further top-level comments)."


@pytest.mark.parametrize(
    "post_id", ["10", " https://news.ycombinator.com/item?id=10#22 ", "news.ycombinator.com/item?id=10"]
)
async def test_hackernews(post_id: str) -> None:
    """A thread of Hacker News, by its number or its address, in the form that `get_hn_comments` has."""
    async with open_tool() as tool:
        result = await call_tool(tool, Ledger().context, platform="hackernews", post_id=post_id, limit=2, depth=1)
    lines = result.content.splitlines()
    assert lines[0] == 'Comments on [S1] "A lighthouse of paper & glue" (story id 10): 2 of 7 shown.'
    assert lines[1].startswith("Read on with offset=2 (further top-level comments), or post_id=2")


async def test_below_a_comment_of_hackernews() -> None:
    """A comment may be named with its story or alone."""
    async with open_tool() as tool:
        for post_id in ("22", "10/22"):
            content = (await call_tool(tool, Ledger().context, platform="hackernews", post_id=post_id)).content
            assert "1 of 1 shown under comment 22." in content.splitlines()[0]


@pytest.mark.parametrize(
    ("platform", "post_id", "words"),
    [
        ("hackernews", "abc", "names no item of Hacker News"),
        ("hackernews", "https://www.reddit.com/r/kites/comments/p1/x/", "set platform=reddit"),
        ("hackernews", "0", "names no item"),
        ("hackernews", "99", "no item 99"),
        ("reddit", "https://news.ycombinator.com/item?id=10", "names no Reddit post"),
        ("reddit", "https://www.reddit.com/r/kites/", "names no Reddit post"),
    ],
)
async def test_what_names_nothing(platform: str, post_id: str, words: str) -> None:
    """Ids of the wrong kind are told, with what is wanted."""
    async with open_tool() as tool:
        with pytest.raises(ToolError, match=words):
            await call_tool(tool, Ledger().context, platform=platform, post_id=post_id)


async def test_services_down() -> None:
    """Each service that does not answer is named, with its reasons, and something else to do."""
    async with open_tool(is_up=False) as tool:
        with pytest.raises(ToolError, match=r"Hacker News.* is not available: .*502.*web_search") as caught:
            await call_tool(tool, Ledger().context, platform="hackernews", post_id="10")
        assert caught.value.words.endswith(" Try this later, or look for the discussion with web_search.")
        with pytest.raises(ToolError, match=r"Reddit is not available for post p1\. the API: .*web_search"):
            await call_tool(tool, Ledger().context, platform="reddit", post_id="p1")


def test_schema() -> None:
    """The names are the agreed ones, and the whole schema is short."""
    tool = object.__new__(GetCommentsTool)
    assert set(tool.parameters["properties"]) == {"platform", "post_id", "limit", "depth", "offset"}
    assert len(json.dumps(tool.to_anthropic())) < 550
