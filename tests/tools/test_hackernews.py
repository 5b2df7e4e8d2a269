"""The Hacker News tools: exactly what a model reads, and what is stored."""

import re
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from explorer.errors import ToolError
from explorer.net.hackernews import HackerNews
from explorer.tool import Tool, ToolResult
from explorer.tools.hackernews import HnCommentsTool, HnSearchTool, HnStoriesTool
from net.hn_site import ITEMS, client, hn_routes, node
from net.loopback import NOW, Ledger, as_json, open_web, replaying, serving, unfenced

MakeTool = Callable[[HackerNews, Any, Any], Tool]


@asynccontextmanager
async def open_tool(make: MakeTool, ledger: Ledger, **services: bool) -> AsyncGenerator[Tool]:
    """A tool over a small Hacker News of our own."""
    with serving(hn_routes(**services)) as site:
        async with open_web() as web:
            yield make(client(web, site), ledger.store, lambda: NOW)


async def use(make: MakeTool, ledger: Ledger | None = None, **arguments: Any) -> ToolResult:
    """Call a tool once."""
    async with open_tool(make, ledger or Ledger()) as tool:
        return await tool.execute(**arguments)


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
        async with open_web() as web:
            result = await HnCommentsTool(client(web, site), Ledger().store, lambda: NOW).execute(story_id=16)
    head = 'Comments on [S1] "A lighthouse of paper & glue" (story id 16): 0 of 230 shown'
    assert result.content == f"{head} (their text is not available)."


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
    assert result.metadata["sources"] == []


async def test_search_since_and_tags() -> None:
    """Since is seen from now, and tags are passed on in the service's form."""
    with serving(hn_routes()) as site:
        async with open_web() as web:
            tool = HnSearchTool(client(web, site), Ledger().store, lambda: NOW)
            await tool.execute(query="glue", since="24h", sort="date", tags="story, author_ada")
            for wrong in ({"since": "soon"}, {"tags": "story&x=1"}):
                with pytest.raises(ToolError, match="is not understood"):
                    await tool.execute(query="glue", **wrong)
    assert site.asked[0].path.startswith("/api/search_by_date?")
    assert f"created_at_i%3E%3D{int(NOW.timestamp()) - 86400}" in site.asked[0].path
    assert "tags=story%2Cauthor_ada" in site.asked[0].path
    assert len(site.asked) == 1


async def test_search_for_comments() -> None:
    """A comment's hit names its story and shows its words."""
    hit = {"objectID": "8", "comment_text": "I use <i>glue</i>.<p>Lots.", "story_title": "Paper", "author": "bo"}
    with serving({"/api/search": as_json({"hits": [hit], "nbHits": 1})}) as site:
        async with open_web() as web:
            tool = HnSearchTool(client(web, site), Ledger().store, lambda: NOW)
            result = await tool.execute(query="glue", tags="comment")
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
    async with open_tool(make, Ledger(), has_tree=False, has_items=False) as tool:
        with pytest.raises(ToolError, match=r"Hacker News.* is not available: .*502.*[Tt]ry ") as caught:
            await tool.execute(**arguments)
    assert "web_search" in caught.value.message


def test_schemas() -> None:
    """Names and parameters are the agreed ones, each described."""
    parameters = {
        HnStoriesTool: {"story_type", "limit"},
        HnCommentsTool: {"story_id", "limit", "depth"},
        HnSearchTool: {"query", "since", "sort", "tags"},
    }
    for kind, names in parameters.items():
        properties = kind.arguments.model_json_schema()["properties"]
        assert set(properties) == names
        assert all(field["description"] for field in properties.values())
    assert [kind.name for kind in parameters] == ["get_hn_stories", "get_hn_comments", "search_hn"]


@pytest.fixture(scope="module")
def recorded() -> Generator[str]:
    """Where the recorded services are replayed, where they are at hand."""
    with replaying() as url:
        yield url


async def replay(url: str, make: MakeTool, **arguments: Any) -> str:
    """Call a tool once over the recorded services."""
    async with open_web() as web:
        tool = make(HackerNews(web, f"{url}/v0", f"{url}/api/v1"), Ledger().store, lambda: NOW)
        return (await tool.execute(**arguments)).content


@pytest.mark.parametrize("kind", ["top", "new", "best", "ask", "show", "job"])
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


async def test_comments_that_are_not_recorded(recorded: str) -> None:
    """Stories of the day have ids of comments that are absent: none shown, and said so."""
    content = await replay(recorded, HnCommentsTool, story_id=49251411)
    assert re.search(r": 0 of \d+ shown \(their text is not available\)\.$", content)


async def test_a_poll_and_a_text(recorded: str) -> None:
    """A poll's thread and a hiring thread with hundreds of top comments are read."""
    assert " of 54 shown.\n" in await replay(recorded, HnCommentsTool, story_id=126809)
    assert "\nText of the story: " in await replay(recorded, HnCommentsTool, story_id=40846428, limit=20)


async def test_searching(recorded: str) -> None:
    """Stories, comments and newest-first are found; a sentence is relaxed to what is found."""
    assert "1. [S1] " in await replay(recorded, HnSearchTool, query="rust")
    assert "Comment on: " in await replay(recorded, HnSearchTool, query="rust", tags="comment")
    newest = await replay(recorded, HnSearchTool, query="rust", sort="date", since="7d")
    days = re.findall(r"\| (2026-08-\d\dT\S+) \|", newest)
    assert days == sorted(days, reverse=True)
    assert "words were left out" in await replay(recorded, HnSearchTool, query="what do people think about rust today")
