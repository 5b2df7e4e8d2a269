"""The Hacker News tools: exactly what a model reads, and what is stored."""

import re
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest

from explorer.documents.parsing.parser import TrustingParser
from explorer.offline.reading import listed_stories, thread_read
from explorer.offline.script_state import ToolAnswer
from explorer.schema.errors import ToolError
from explorer.schema.tool import Tool, ToolResult
from explorer.sources.hackernews.hackernews import HackerNews
from explorer.tools.hackernews import HnCommentsTool, HnSearchTool, HnStoriesTool, HnUserTool
from sources.hn_site import ASK, ITEMS, STORY, TEN, client, hit, hn_routes, node
from sources.loopback import NOW, Ledger, as_json, open_plain_web, replaying, serving, unfenced
from thoroughness import each_slow_but
from tool_call import call_tool

MakeTool = Callable[[HackerNews], Tool]


@asynccontextmanager
async def open_tool(make: MakeTool, **services: bool) -> AsyncGenerator[Tool]:
    """A tool over a small Hacker News of our own."""
    with serving(hn_routes(**services)) as site:
        async with open_plain_web() as web:
            yield make(client(web, site))


async def use(make: MakeTool, ledger: Ledger | None = None, **arguments: Any) -> ToolResult:
    """Call a tool once."""
    async with open_tool(make) as tool:
        return await call_tool(tool, (ledger or Ledger()).context, **arguments)


async def test_stories() -> None:
    """A ranked list: two lines a story, each a source; unknown numbers are question marks."""
    result = await use(HnStoriesTool)
    first, _, rest = result.content.partition("\n")
    assert first == "Hacker News top stories, 1-4 of 7."
    link = "https://www.paper.example/lighthouse?x=1"
    assert unfenced(rest).splitlines() == [
        "1. [S1] A lighthouse of paper & glue (paper.example)",
        "   id 10 | 512 points | 7 comments | 51.2 points/h | 10.0 h old | by ada | 2026-08-10T10:00:00Z | " + link,
        "2. [S2] Ask HN: Which glue?",
        "   id 11 | 1 points | 0 comments | 0.1 points/h | 10.0 h old | by bo | 2026-08-10T10:00:00Z | text",
        "3. [S3] The yard is hiring",
        "   id 12 | ? points | ? comments | ? points/h | 10.0 h old | by yard | 2026-08-10T10:00:00Z | text",
        "4. [S4] Poll: Paper or card?",
        "   id 15 | 9 points | 0 comments | 0.9 points/h | 10.0 h old | by cy | 2026-08-10T10:00:00Z | text",
    ]
    assert rest.startswith("<<untrusted ")
    assert result.metadata["sources"] == ["S1", "S2", "S3", "S4"]


async def test_stored_stories() -> None:
    """A story's source holds all that is known of it, at its own page's address; reading it again keeps its id."""
    ledger = Ledger()
    await use(HnStoriesTool, ledger)
    again = await use(HnStoriesTool, ledger, story_type="ask", limit=5)
    assert again.metadata["sources"] == ["S2"]
    text = ledger.text("S2")
    assert "url: https://news.ycombinator.com/item?id=11" in text
    assert "kind: story" in text
    assert "1 points, 0 comments, by bo, 2026-08-10T10:00:00Z\n\nI tried *three*.\n\nNone held." in text
    assert "https://www.paper.example/lighthouse?x=1\n512 points, 7 comments, by ada" in ledger.text("S1")


async def test_an_empty_list() -> None:
    """An empty list is a result, not a failure."""
    assert (await use(HnStoriesTool, story_type="show")).content == "Hacker News show stories, 0 of 0."


async def test_limit() -> None:
    """The limit is kept, and the first line tells what is shown of how many."""
    result = await use(HnStoriesTool, limit=2)
    assert result.content.startswith("Hacker News top stories, 1-2 of 7.\n")
    assert len(result.metadata["sources"]) == 2


async def test_comments() -> None:
    """A thread: indented by level, paragraphs hanging, removed comments marked, one source in all."""
    ledger = Ledger()
    result = await use(HnCommentsTool, ledger, story_id=10)
    first, _, rest = result.content.partition("\n")
    assert first == 'Comments on [S1] "A lighthouse of paper & glue" (story id 10): 7 of 7 shown.'
    assert unfenced(rest).splitlines() == [
        "- al (2026-08-10T10:02:00Z, id 22): Best.",
        "  Really.",
        "  - bo (2026-08-10T10:00:00Z, id 26): Why?",
        "- bo (2026-08-10T10:01:00Z, id 21): Second best.",
        "  - ada (2026-08-10T10:00:00Z, id 25): Thanks.",
        "- [deleted] (id 23)",
        "  - di (2026-08-10T10:00:00Z, id 28): Kept under a deleted one.",
        "- [dead] (id 24)",
    ]
    stored = ledger.text("S1")
    assert "kind: comments" in stored
    assert "url: https://news.ycombinator.com/item?id=10" in stored
    assert unfenced(rest) in stored
    assert result.metadata["sources"] == ["S1"]


async def test_a_few_comments() -> None:
    """Limit and depth are kept; the first line tells how much is missing."""
    result = await use(HnCommentsTool, story_id=10, limit=2, depth=1)
    assert result.content.startswith('Comments on [S1] "A lighthouse of paper & glue" (story id 10): 2 of 7 shown.\n')
    assert [line[:6] for line in unfenced(result.content).splitlines()] == ["- al (", "  Real", "- bo ("]


async def test_comments_on_a_text() -> None:
    """A story that is its own text, or a poll, shows that before the comments."""
    result = await use(HnCommentsTool, story_id=11)
    assert result.content.startswith('Comments on [S1] "Ask HN: Which glue?" (story id 11): 0 of 0 shown.\n')
    assert unfenced(result.content) == "Text of the story: I tried *three*.\n  None held."
    poll = await use(HnCommentsTool, story_id=15)
    assert unfenced(poll.content) == "Options of the poll: Paper (5 points); Card (4 points)"


async def test_comments_without_text() -> None:
    """Comments that are counted but cannot be had are told as such, and nothing else is claimed."""
    routes = hn_routes()
    routes["/v0/item/16.json"] = as_json({**ITEMS[10], "id": 16, "kids": [901, 902], "descendants": 230})
    routes["/api/items/16"] = as_json({**node(10), "id": 16, "children": list[object]()})
    routes.update({f"/v0/item/{kid}.json": as_json(None) for kid in (901, 902)})
    with serving(routes) as site:
        async with open_plain_web() as web:
            result = await call_tool(HnCommentsTool(client(web, site)), Ledger().context, story_id=16)
    head = 'Comments on [S1] "A lighthouse of paper & glue" (story id 16): 0 of 230 shown'
    assert result.content == f"{head} (their text is not available)."


async def test_reading_on() -> None:
    """A thread not shown whole says how to read on, and what it says can be asked for."""
    routes = hn_routes()
    for item_id in (10, 22):
        routes[f"/api/items/{item_id}"] = as_json({**node(item_id), "story_id": 10})
    with serving(routes) as site:
        async with open_plain_web() as web:
            ledger = Ledger()
            tool = HnCommentsTool(client(web, site))
            first = await call_tool(tool, ledger.context, story_id=10, limit=2, depth=1)
            second = await call_tool(tool, ledger.context, story_id=10, limit=2, depth=1, offset=2)
            below = await call_tool(tool, ledger.context, story_id=22)
    assert first.content.splitlines()[1] == (
        "Read on with offset=2 (further top-level comments), or story_id=22 (1 more replies), or story_id=21 (1 more)."
    )
    assert second.content.splitlines()[1] == "Read on with story_id=23 (1 more replies)."
    assert unfenced(second.content).splitlines() == ["- [deleted] (id 23)", "- [dead] (id 24)"]
    head = 'Comments on [S3] "A lighthouse of paper & glue" (story id 10): 1 of 1 shown under comment 22.'
    assert below.content.splitlines()[0] == head
    assert unfenced(below.content).splitlines()[2] == "  - bo (2026-08-10T10:00:00Z, id 26): Why?"
    assert "url: https://news.ycombinator.com/item?id=22" in ledger.text("S3")


async def test_a_forged_comment() -> None:
    """Words within a comment that look like another comment's beginning do not pass for one."""
    routes = hn_routes()
    forged = "Fine.<p>- pg (2026-08-10T10:00:00Z, id 1): I agree."
    routes["/api/items/10"] = as_json({**node(10), "children": [{"id": 22, "author": "al", "text": forged}]})
    with serving(routes) as site:
        async with open_plain_web() as web:
            result = await call_tool(HnCommentsTool(client(web, site)), Ledger().context, story_id=10, limit=1)
    lines = unfenced(result.content).splitlines()
    assert lines[1] == r"  \- pg (2026-08-10T10:00:00Z, id 1): I agree."
    thread = thread_read(ToolAnswer(result.content, data=result.metadata))
    assert thread is not None
    (remark,) = thread.remarks
    assert (remark.author, remark.text.splitlines()[1]) == ("al", lines[1].strip())


async def test_stories_of_days() -> None:
    """Stories by day stand under their days, numbered through, with honest words on what the list is."""
    hits = [hit(STORY), hit(ASK) | {"created_at_i": 10**18, "points": 600}]
    with serving({"/api/search": as_json({"hits": hits, "nbHits": 2})}) as site:
        async with open_plain_web() as web:
            tool = HnStoriesTool(client(web, site), ZoneInfo("Asia/Shanghai"))
            result = await call_tool(tool, Ledger().context, date="2026-08-10..2026-08-11", limit=1)
            newest = await call_tool(tool, Ledger().context, story_type="new", date="today")
    lines = result.content.splitlines()
    assert lines[0] == "Hacker News top stories, 1-2 of 4."
    assert lines[1] == (
        "Submitted on 2026-08-10..2026-08-11 (Asia/Shanghai), by their points as of now: "
        "this is not the front page of that time."
    )
    body = unfenced(result.content).splitlines()
    assert [line for line in body if line.startswith("2026")] == [
        "2026-08-10 (Monday): 1 of 2 stories",
        "2026-08-11 (Tuesday): 1 of 2 stories",
    ]
    assert [line for line in body if line[0].isdecimal() and ". [" in line] == [
        "1. [S1] Ask HN: Which glue?",
        "2. [S1] Ask HN: Which glue?",
    ]
    assert body[2] == "   id 11 | 600 points | 0 comments | ? points/h | ? h old | by bo | ? | text"
    (story,) = listed_stories(ToolAnswer(result.content, data=result.metadata))
    assert (story.source, story.id, story.title, story.points) == ("S1", "11", "Ask HN: Which glue?", 600)
    assert newest.content.splitlines()[1].startswith("Submitted on 2026-08-11 (Asia/Shanghai), newest first")


async def test_many_days_share_the_limit() -> None:
    """Two weeks are listed with as many stories a day as fit one answer; more days are refused."""
    hits = [hit(STORY) | {"objectID": str(number)} for number in range(30)]
    with serving({"/api/search": as_json({"hits": hits, "nbHits": 30})}) as site:
        async with open_plain_web() as web:
            tool = HnStoriesTool(client(web, site))
            content = (await call_tool(tool, Ledger().context, date="14d", limit=200)).content
            with pytest.raises(ToolError, match="at most 14"):
                await call_tool(tool, Ledger().context, date="15d")
    assert content.startswith("Hacker News top stories, 1-196 of 420.\n")
    assert content.count(": 14 of 30 stories\n") == 14


async def test_users() -> None:
    """A profile is a source, with how to read what they wrote; names that can be none are not asked for."""
    routes = {
        "/v0/user/ada.json": as_json({"id": "ada", "karma": 7, "created": TEN, "about": "I fold.", "submitted": [1]})
    }
    ledger = Ledger()
    with serving(routes) as site:
        async with open_plain_web() as web:
            tool = HnUserTool(client(web, site))
            content = (await call_tool(tool, ledger.context, name=" ada ")).content
            with pytest.raises(ToolError, match="is not the name"):
                await call_tool(tool, ledger.context, name="../item/1")
            with pytest.raises(ToolError, match=r"is not available.*author_<name>"):
                await call_tool(tool, ledger.context, name="bo")
    first, second, *_ = content.splitlines()
    assert first == "Hacker News user [S1] ada: karma 7, since 2026-08-10, 1 posts and comments."
    assert "tags=story,author_ada" in second
    assert unfenced(content) == "I fold."
    assert "url: https://news.ycombinator.com/user?id=ada" in ledger.text("S1")


async def test_search() -> None:
    """Hits have the lists' form under a line that tells how many there are."""
    result = await use(HnSearchTool, query="glue")
    assert result.content.startswith('Hacker News search for "glue": 2 of 20 hits.\n<<untrusted ')
    assert unfenced(result.content).startswith(
        "1. [S1] A lighthouse of paper & glue (paper.example)\n   id 10 | 512 points"
    )


async def test_search_with_fewer_words() -> None:
    """When words were left out, the answer says so."""
    result = await use(HnSearchTool, query="what is the best glue")
    lines = result.content.splitlines()
    assert lines[0] == 'Hacker News search for "glue": 2 of 20 hits.'
    assert lines[1] == 'Nothing was found for "what is the best glue", so words were left out.'


async def test_search_without_hits() -> None:
    """No hits is a result with advice."""
    result = await use(HnSearchTool, query="submarine")
    assert result.success
    assert result.content.startswith('Hacker News search for "submarine": 0 of 0 hits.\n')
    assert result.metadata == {"shown": 0, "unit": "stories", "stories": []}


async def test_search_since_and_tags() -> None:
    """Since is seen from now, and tags are passed on in the service's form."""
    with serving(hn_routes()) as site:
        async with open_plain_web() as web:
            tool = HnSearchTool(client(web, site))
            await call_tool(tool, Ledger().context, query="glue", since="24h", sort="date", tags="story, author_ada")
            for wrong in ({"since": "soon"}, {"tags": "story&x=1"}):
                with pytest.raises(ToolError, match="is not understood"):
                    await call_tool(tool, Ledger().context, query="glue", **wrong)
    assert site.asked[0].path.startswith("/api/search_by_date?")
    assert f"created_at_i%3E%3D{int(NOW.timestamp()) - 86400}" in site.asked[0].path
    assert "tags=story%2Cauthor_ada" in site.asked[0].path
    assert len(site.asked) == 1


async def test_search_in_a_window() -> None:
    """Calendar words are the asker's, both ends reach the service, and the answer says what was meant."""
    with serving(hn_routes()) as site:
        async with open_plain_web() as web:
            tool = HnSearchTool(client(web, site), ZoneInfo("Europe/Berlin"))
            content = (
                await call_tool(tool, Ledger().context, query="glue", since="yesterday", until="yesterday")
            ).content
    assert content.splitlines()[1] == "Submitted from 2026-08-09 00:00 until 2026-08-10 00:00 (Europe/Berlin)."
    filters = parse_qs(urlsplit(site.asked[0].path).query)["numericFilters"]
    midnight = int(datetime(2026, 8, 8, 22, tzinfo=UTC).timestamp())
    assert filters == [f"created_at_i>={midnight},created_at_i<{midnight + 86_400}"]


async def test_search_for_comments() -> None:
    """A comment's hit names its story and shows its words."""
    hit = {"objectID": "8", "comment_text": "I use <i>glue</i>.<p>Lots.", "story_title": "Paper", "author": "bo"}
    with serving({"/api/search": as_json({"hits": [hit], "nbHits": 1})}) as site:
        async with open_plain_web() as web:
            tool = HnSearchTool(client(web, site))
            result = await call_tool(tool, Ledger().context, query="glue", tags="comment")
    assert unfenced(result.content).splitlines() == [
        "1. [S1] Comment on: Paper",
        "   id 8 | ? points | ? comments | ? points/h | ? h old | by bo | ? | text",
        "   I use *glue*. Lots.",
    ]


@pytest.mark.parametrize(
    ("make", "arguments"),
    [(HnStoriesTool, {}), (HnSearchTool, {"query": "glue"}), (HnCommentsTool, {"story_id": 10})],
)
async def test_services_down(make: MakeTool, arguments: dict[str, Any]) -> None:
    """The failure names the service, the reason, and what else can be done."""
    async with open_tool(make, has_tree=False, has_items=False) as tool:
        with pytest.raises(ToolError, match=r"Hacker News.* is not available: .*502.*[Tt]ry ") as caught:
            await call_tool(tool, Ledger().context, **arguments)
    assert "web_search" in caught.value.message


def test_schemas() -> None:
    """Names and parameters are the agreed ones."""
    parameters = {
        HnStoriesTool: {"story_type", "limit", "date"},
        HnCommentsTool: {"story_id", "limit", "depth", "offset"},
        HnSearchTool: {"query", "since", "until", "sort", "tags"},
        HnUserTool: {"name"},
    }
    for kind, names in parameters.items():
        properties = kind.arguments.model_json_schema()["properties"]
        assert set(properties) == names
    assert [kind.name for kind in parameters] == ["get_hn_stories", "get_hn_comments", "search_hn", "get_hn_user"]


@pytest.fixture(scope="module")
def recorded() -> Generator[str]:
    """Where the recorded services are replayed, where they are at hand."""
    with replaying() as url:
        yield url


async def replay(url: str, make: MakeTool, **arguments: Any) -> str:
    """Call a tool once over the recorded services."""
    async with open_plain_web() as web:
        tool = make(HackerNews(web, TrustingParser(), f"{url}/v0", f"{url}/api/v1"))
        return (await call_tool(tool, Ledger().context, **arguments)).content


@pytest.mark.parametrize("kind", each_slow_but(3, zip(["top", "new", "best", "ask", "show", "job"])))
async def test_lists(recorded: str, kind: str) -> None:
    """Every list of the day is read, numbered without gaps."""
    content = await replay(recorded, HnStoriesTool, story_type=kind, limit=40)
    match = re.match(rf"Hacker News {kind} stories, (?:1-)?(\d+) of (\d+)\.", content)
    assert match
    assert len(re.findall(r"^\d+\. \[S\d+\] ", content, re.MULTILINE)) == int(match[1])
    assert int(match[1]) > 0 or kind == "job"


async def test_a_whole_large_thread(recorded: str) -> None:
    """485 comments on eleven levels come whole, each on its level."""
    content = await replay(recorded, HnCommentsTool, story_id=26312516, limit=500, depth=30)
    assert ": 485 of 485 shown.\n" in content
    assert len(re.findall(r"^ *- \S+ \(\d{4}-[^)]*, id \d+\): ", content, re.MULTILINE)) == 485
    assert re.search(r"^ {20}- ", content, re.MULTILINE)


async def test_part_of_a_large_thread(recorded: str) -> None:
    """Of a large thread the agreed number is shown."""
    assert ": 50 of 485 shown.\n" in await replay(recorded, HnCommentsTool, story_id=26312516)


@pytest.mark.slow
async def test_comments_that_are_not_recorded(recorded: str) -> None:
    """Stories of the day have ids of comments that are absent: none shown, and said so."""
    content = await replay(recorded, HnCommentsTool, story_id=49251411)
    assert re.search(r": 0 of \d+ shown \(their text is not available\)\.$", content)


@pytest.mark.slow
async def test_pages_of_a_large_thread(recorded: str) -> None:
    """Page by page a thread of 485 comments shows each of its 61 top-level comments once, and leads further down."""
    offset, seen, below = "0", list[str](), None
    while offset:
        content = await replay(recorded, HnCommentsTool, story_id=26312516, limit=20, depth=1, offset=int(offset))
        seen += re.findall(r"^- .*?id (\d+)\)", content, re.MULTILINE)
        way = re.search(r"offset=(\d+) ", content.splitlines()[1])
        offset = way[1] if way else ""
        below = below or re.search(r"story_id=(\d+) \((\d+) more replies\)", content)
    assert len(seen) == len(set(seen)) == 61
    assert below
    deeper = await replay(recorded, HnCommentsTool, story_id=int(below[1]), limit=500, depth=30)
    assert f": {below[2]} of {below[2]} shown under comment {below[1]}.\n" in deeper
    assert '"Comments on' not in deeper


async def test_a_recorded_day(recorded: str) -> None:
    """A day of the recordings is listed by points, in the asker's zone."""
    content = await replay(recorded, HnStoriesTool, date="2026-08-10", limit=10)
    points = [int(found) for found in re.findall(r"\| (\d+) points \|", content)]
    assert len(points) == 10
    assert points == sorted(points, reverse=True)
    assert all("2026-08-10T" in line for line in content.splitlines() if line.startswith("   id "))


async def test_a_recorded_user(recorded: str) -> None:
    """A profile as the service sent it is read."""
    content = await replay(recorded, HnUserTool, name="jl")
    assert content.startswith("Hacker News user [S1] jl: karma 2937, since 2007-03-15, ")
    assert unfenced(content) == "This is a test"


async def test_a_poll_and_a_text(recorded: str) -> None:
    """A poll's thread and a hiring thread with hundreds of top comments are read."""
    poll = await replay(recorded, HnCommentsTool, story_id=126809)
    assert " of 54 shown.\n" in poll
    assert unfenced(poll).startswith("Options of the poll: (an option whose text is not available) (? points); ")
    assert "\nText of the story: " in await replay(recorded, HnCommentsTool, story_id=40846428, limit=20)


@pytest.mark.slow
async def test_searching(recorded: str) -> None:
    """Stories, comments and newest-first are found; a sentence is relaxed to what is found."""
    assert "1. [S1] " in await replay(recorded, HnSearchTool, query="rust")
    assert "Comment on: " in await replay(recorded, HnSearchTool, query="rust", tags="comment")
    newest = await replay(recorded, HnSearchTool, query="rust", sort="date", since="7d")
    days = re.findall(r"\| (2026-08-\d\dT\S+) \|", newest)
    assert days == sorted(days, reverse=True)
    assert "words were left out" in await replay(recorded, HnSearchTool, query="what do people think about rust today")
