"""Reading Hacker News through its two services, each standing in for the other."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest

from explorer.documents.parsing.document import Document
from explorer.documents.parsing.parser import TrustingParser
from explorer.schema.errors import ToolError
from explorer.sources.hackernews.hackernews import HackerNews
from explorer.sources.hackernews.items import HnUser, Story
from explorer.sources.hackernews.services import HnQuery, ServiceDownError
from explorer.sources.threads import Comment, CommentRange, Thread, page_of, walk
from sources.hn_site import ITEMS, TEN, client, hn_routes, node
from sources.loopback import Answer, Handler, Site, as_json, open_plain_web, serving


def outline(thread: Thread[Story]) -> list[str]:
    """One word per comment: level and id, with the state of those without text."""
    return [f"{level}:{comment.id}{comment.state}" for level, comment in walk(thread.comments)]


async def test_stories_keep_their_rank() -> None:
    """Null, dead and deleted items are skipped, jobs and polls stay, and the order is the list's."""
    with serving(hn_routes()) as site:
        async with open_plain_web() as web:
            listed = await client(web, site).stories("top", 30)
    assert [story.id for story in listed.stories] == [10, 11, 12, 15]
    assert listed.total == 7
    job = listed.stories[2]
    assert (job.points, job.comments, job.url, job.kind) == (None, None, "", "job")
    assert listed.stories[0].title == "A lighthouse of paper & glue"
    assert listed.stories[1].text == "I tried *three*.\n\nNone held."


async def test_a_short_list_asks_for_little() -> None:
    """A limit of one takes one batch of items, not the whole list, and gives one."""
    routes = hn_routes()
    routes["/v0/topstories.json"] = as_json([10, *[999] * 100])
    with serving(routes) as site:
        async with open_plain_web() as web:
            assert len((await client(web, site).stories("top", 1)).stories) == 1
        assert len(site.asked) < 20


async def test_lists_that_are_none() -> None:
    """An empty list is empty; null and surprises are told."""
    with serving(hn_routes()) as site:
        async with open_plain_web() as web:
            assert (await client(web, site).stories("show", 5)).total == 0
            with pytest.raises(ToolError, match="no list of best stories"):
                await client(web, site).stories("best", 5)
            with pytest.raises(ToolError, match="something unexpected"):
                await client(web, site).stories("new", 5)


async def test_a_single_broken_item_is_skipped() -> None:
    """One item that fails costs that item; all failing is a failure."""
    routes = hn_routes()
    routes["/v0/item/11.json"] = Answer(b"not json")
    with serving(routes) as site:
        async with open_plain_web() as web:
            assert [story.id for story in (await client(web, site).stories("top", 9)).stories] == [10, 12, 15]
            with pytest.raises(ToolError, match="unexpected"):
                await client(web, site).stories("ask", 9)


async def test_thread_from_the_tree() -> None:
    """Algolia's tree comes in Firebase's rank order, with removed comments and the replies under them."""
    with serving(hn_routes()) as site:
        async with open_plain_web() as web:
            thread = await client(web, site).thread(10, CommentRange(50, 6))
    assert outline(thread) == ["0:22", "1:26", "0:21", "1:25", "0:23deleted", "1:28", "0:24dead"]
    assert (thread.shown, thread.total) == (7, 7)
    assert thread.comments[0].text == "Best.\n\nReally."
    assert len(site.asked) == 2


async def test_the_comments_of_a_thread_are_parsed_in_one_request() -> None:
    """All HTML of a tree goes at once to the process that parses, which is started before the network is asked."""
    asked: list[str] = []

    class Counting(TrustingParser):
        async def prepare(self, kind: str) -> None:
            asked.append(f"prepare {kind}")

        async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
            asked.append(f"{kind} {len(json.loads(body))}")
            return await super().parse(kind, body, url=url, content_type=content_type)

    with serving(hn_routes()) as site:
        async with open_plain_web() as web:
            hackernews = HackerNews(web, Counting(), f"{site.url}/v0/", f"{site.url}/api")
            thread = await hackernews.thread(10, CommentRange(50, 6))
    assert thread.shown == 7
    assert asked[:2] == ["prepare comments"] * 2
    assert len(asked) == 3
    assert asked[2].startswith("comments ")


async def test_thread_item_by_item() -> None:
    """With Algolia down the same thread comes from Firebase; absent replies are passed over."""
    with serving(hn_routes(has_tree=False)) as site:
        async with open_plain_web() as web:
            thread = await client(web, site).thread(10, CommentRange(50, 6))
    assert outline(thread) == ["0:22", "1:26", "0:21", "1:25", "0:23deleted", "1:28", "0:24dead"]
    assert thread.post.title == "A lighthouse of paper & glue"


async def test_thread_without_firebase() -> None:
    """With Firebase down the tree is enough, in the tree's own order."""
    with serving(hn_routes(has_items=False)) as site:
        async with open_plain_web() as web:
            thread = await client(web, site).thread(10, CommentRange(50, 6))
    assert outline(thread)[0] == "0:21"
    assert (thread.post.points, thread.post.comments, thread.total) == (512, None, 7)


async def test_both_services_down() -> None:
    """The failure names both."""
    with serving(hn_routes(has_tree=False, has_items=False)) as site:
        async with open_plain_web() as web:
            with pytest.raises(ServiceDownError, match=r"API is not available.*search is not available"):
                await client(web, site).thread(10, CommentRange(50, 6))
            with pytest.raises(ServiceDownError, match="status 502"):
                await client(web, site).stories("top", 5)
            with pytest.raises(ServiceDownError):
                await client(web, site).search(HnQuery("glue"))


async def test_comments_whose_text_is_absent() -> None:
    """A story with counted comments of which none can be had shows none, and still says how many there are."""
    routes = hn_routes()
    routes["/v0/item/16.json"] = as_json(ITEMS[10] | {"id": 16, "kids": [901, 902, 903], "descendants": 230})
    routes["/api/items/16"] = as_json({**node(10), "id": 16, "children": list[object]()})
    routes.update({f"/v0/item/{kid}.json": as_json(None) for kid in (901, 902, 903)})
    with serving(routes) as site:
        async with open_plain_web() as web:
            thread = await client(web, site).thread(16, CommentRange(50, 6))
    assert (thread.shown, thread.total) == (0, 230)


async def test_top_comments_the_tree_lacks() -> None:
    """A top comment too new for Algolia is taken from Firebase and stands at its rank."""
    routes = hn_routes()
    tree = node(10)
    tree["children"] = [child for child in tree["children"] if child["id"] != 22]
    routes["/api/items/10"] = as_json(tree)
    with serving(routes) as site:
        async with open_plain_web() as web:
            thread = await client(web, site).thread(10, CommentRange(50, 6))
    assert outline(thread)[:3] == ["0:22", "1:26", "0:21"]


async def test_children_in_a_circle() -> None:
    """Ids that name each other as replies end somewhere."""
    routes = hn_routes(has_tree=False)
    routes["/v0/item/26.json"] = as_json(ITEMS[26] | {"kids": [22, 26]})
    with serving(routes) as site:
        async with open_plain_web() as web:
            thread = await client(web, site).thread(10, CommentRange(50, 20))
    assert thread.shown == 7


async def test_poll_options() -> None:
    """A poll's options come with their points, from Firebase when the tree has none."""
    with serving(hn_routes()) as site:
        async with open_plain_web() as web:
            thread = await client(web, site).thread(15, CommentRange(50, 6))
    assert thread.post.options == ("Paper (5 points)", "Card (4 points)")


async def test_what_is_no_story() -> None:
    """An unknown id and a poll's option are told apart, with what to do."""
    with serving(hn_routes()) as site:
        async with open_plain_web() as web:
            with pytest.raises(ToolError, match="no item 99"):
                await client(web, site).thread(99, CommentRange())
            with pytest.raises(ToolError, match=r"option of a poll, not a story\."):
                await client(web, site).thread(31, CommentRange())


@pytest.mark.parametrize("services", [{}, {"has_tree": False}, {"has_items": False}])
async def test_below_a_comment(services: dict[str, bool]) -> None:
    """A comment's id gives what stands under it and the title of its story, whichever service is down."""
    with serving(hn_routes(**services)) as site:
        async with open_plain_web() as web:
            thread = await client(web, site).thread(22, CommentRange())
    assert (thread.post.id, thread.post.title, thread.root) == (10, "A lighthouse of paper & glue", "22")
    assert outline(thread) == ["0:22", "1:26"]
    assert (thread.shown, thread.total, thread.next_offset) == (1, 1, None)


async def test_a_comment_whose_story_is_lost() -> None:
    """Where the way up to the story ends, the comment is still read."""
    routes = hn_routes(has_tree=False)
    routes["/v0/item/21.json"] = as_json(ITEMS[21] | {"parent": 999})
    with serving(routes) as site:
        async with open_plain_web() as web:
            thread = await client(web, site).thread(21, CommentRange())
    assert (thread.post.title, outline(thread)) == ("(story unknown)", ["0:21", "1:25"])


@pytest.mark.parametrize("services", [{}, {"has_tree": False}, {"has_items": False}])
async def test_pages_of_a_thread(services: dict[str, bool]) -> None:
    """Page after page, each top-level comment is shown once, and what is left out below is counted."""
    seen: list[str] = []
    offset: int | None = 0
    with serving(hn_routes(**services)) as site:
        async with open_plain_web() as web:
            while offset is not None:
                thread = await client(web, site).thread(10, CommentRange(2, 1, offset))
                seen += [comment.id for comment in thread.comments]
                assert all(comment.more == 1 for comment in thread.comments if comment.id in {"21", "23"})
                offset = thread.next_offset
    assert sorted(seen) == ["21", "22", "23", "24"]


async def test_absurd_times() -> None:
    """A time that is no time is unknown, and costs nothing else of the item."""
    routes = hn_routes()
    for item_id, when in ((10, 10**18), (11, -(10**30)), (12, 1e300), (15, "soon")):
        routes[f"/v0/item/{item_id}.json"] = as_json(ITEMS[item_id] | {"time": when})
    with serving(routes) as site:
        async with open_plain_web() as web:
            listed = await client(web, site).stories("top", 30)
    assert [(story.id, story.time) for story in listed.stories] == [(10, None), (11, None), (12, None), (15, None)]


async def test_a_dead_story() -> None:
    """A thread asked for by its id is read also when the story is dead, and says so."""
    with serving(hn_routes()) as site:
        async with open_plain_web() as web:
            assert (await client(web, site).thread(13, CommentRange())).post.state == "dead"


async def test_users() -> None:
    """A user comes from Firebase, else from the search with what it knows; an unknown one is told."""
    down = Answer(b"", 500)
    profile = {"id": "ada", "karma": 7, "created": TEN, "about": "I <i>fold</i>.<p>A lot.", "submitted": [10, 25]}
    routes = {
        "/v0/user/ada.json": as_json(profile),
        "/v0/user/bo.json": down,
        "/api/users/bo": as_json({"username": "bo", "karma": 3, "about": None}),
        "/v0/user/nobody.json": as_json(None),
    }
    with serving(routes) as site:
        async with open_plain_web() as web:
            reader = client(web, site)
            assert await reader.user("ada") == HnUser("ada", 7, TEN, "I *fold*.\n\nA lot.", 2)
            assert await reader.user("bo") == HnUser("bo", 3)
            with pytest.raises(ToolError, match="no user 'nobody'"):
                await reader.user("nobody")
            with pytest.raises(ServiceDownError, match=r"API is not available.*search is not available"):
                await reader.user("cy")


def capped(stories: Sequence[dict[str, Any]], cap: int) -> Callable[[Handler], Answer]:
    """A search that shows at most `cap` hits of a query, in no order worth relying on."""

    def answer(handler: Handler) -> Answer:
        query = parse_qs(urlsplit(handler.path).query)
        bounds = re.fullmatch(r"created_at_i>=(-?\d+),created_at_i<(-?\d+)", query["numericFilters"][0])
        assert bounds
        hits = [story for story in stories if int(bounds[1]) <= story["created_at_i"] < int(bounds[2])]
        return as_json({"hits": hits[: min(cap, int(query["hitsPerPage"][0]))], "nbHits": len(hits)})

    return answer


async def test_a_day_with_more_hits_than_are_shown() -> None:
    """Where the search cuts a day, the day is sliced until all of it is seen, and the ranking is exact."""
    start = int(datetime(2026, 8, 10, tzinfo=UTC).timestamp())
    stories: list[dict[str, Any]] = [
        {"objectID": str(number), "title": f"Story {number}", "points": number * 7 % 101, "created_at_i": start + place}
        for number, place in enumerate(range(-3600, 90_000, 300))
    ]
    inside = [story for story in stories if start <= story["created_at_i"] < start + 86_400]
    with serving({"/api/search": capped(stories, 40)}) as site:
        async with open_plain_web() as web:
            (day,) = await client(web, site).stories_of_days("top", [date(2026, 8, 10)], UTC, 5)
        assert len(site.asked) > 8
    assert day.total == len(inside) == 288
    assert [story.points for story in day.stories] == sorted((story["points"] for story in inside), reverse=True)[:5]


async def test_a_moment_with_more_hits_than_are_shown() -> None:
    """More stories within a minute than the search shows end the slicing, not the run."""
    start = int(datetime(2026, 8, 10, tzinfo=UTC).timestamp())
    stories: list[dict[str, Any]] = [
        {"objectID": str(n), "title": "x", "points": 1, "created_at_i": start} for n in range(9)
    ]
    with serving({"/api/search": capped(stories, 4)}) as site:
        async with open_plain_web() as web:
            (day,) = await client(web, site).stories_of_days("new", [date(2026, 8, 10)], UTC, 5)
    assert day.total == 4


async def test_days_of_a_zone() -> None:
    """A day is the asker's, of 23 or 25 hours where clocks change, and each kind has its own tag."""
    berlin = ZoneInfo("Europe/Berlin")
    with serving({"/api/search": as_json({"hits": [], "nbHits": 0})}) as site:
        async with open_plain_web() as web:
            await client(web, site).stories_of_days("ask", [date(2026, 3, 29)], berlin, 5)
            await client(web, site).stories_of_days("job", [date(2026, 10, 25)], berlin, 5)
            with pytest.raises(ServiceDownError):
                await client(web, Site({})).stories_of_days("job", [date(2026, 10, 25)], berlin, 5)
    asked = [parse_qs(urlsplit(path).query) for path in site.paths()[:2]]
    spans = [[int(second) for second in re.findall(r"\d{5,}", query["numericFilters"][0])] for query in asked]
    assert [end - start for start, end in spans] == [23 * 3600, 25 * 3600]
    assert [query["tags"] for query in asked] == [["ask_hn"], ["job"]]


@pytest.mark.parametrize(
    ("asked", "used", "ids"),
    [
        ("glue", "glue", [10, 11]),
        ("which glue", "which glue", [11]),
        ("what is the best glue", "glue", [10, 11]),
        ("paper lighthouse in cold weather", "paper lighthouse", [10]),
        ("nothing of that", "nothing of that", []),
        ("of the", "of the", []),
    ],
)
async def test_search_relaxes(asked: str, used: str, ids: Sequence[int]) -> None:
    """A query without hits is tried with fewer words, little words first, and the words used are told."""
    with serving(hn_routes()) as site:
        async with open_plain_web() as web:
            found = await client(web, site).search(HnQuery(asked))
        assert len(site.asked) <= 6
    assert found.words == used
    assert [hit.story.id for hit in found.hits] == ids
    assert found.total == 10 * len(ids)


async def test_search_parameters() -> None:
    """Sort, time, tags and number of hits reach the service in its own form."""
    with serving(hn_routes()) as site:
        async with open_plain_web() as web:
            await client(web, site).search(
                HnQuery("glue & more", 1786356000, is_by_date=True, tags="(story,poll)", limit=5)
            )
    path = site.asked[0].path
    assert path.startswith("/api/search_by_date?query=glue+%26+more&hitsPerPage=5")
    assert "tags=%28story%2Cpoll%29" in path
    assert "numericFilters=created_at_i%3E%3D1786356000" in path


async def test_old_hits_with_nulls() -> None:
    """Recordings of older years have null where newer ones have nothing."""
    nulls = {"objectID": "7", "title": None, "url": None, "author": None, "points": None, "children": None}
    comment = {"objectID": "8", "comment_text": "I use <i>glue</i>.", "story_title": "Paper &amp; more", "title": None}
    with serving({"/api/search": as_json({"hits": [nulls, comment], "nbHits": None})}) as site:
        async with open_plain_web() as web:
            found = await client(web, site).search(HnQuery("x"))
    assert [hit.story.title for hit in found.hits] == ["(no title)", "Comment on: Paper & more"]
    assert found.hits[1].comment == "I use *glue*."
    assert found.total == 2


def test_page_of() -> None:
    """The best replies to the best comments come before the last top comments, parents before their replies."""

    def comment(number: int, *replies: Comment) -> Comment:
        return Comment(str(number), replies=replies)

    tree = [comment(1, comment(11, comment(111)), comment(12)), comment(2), comment(3), comment(4)]

    def ids(part: CommentRange) -> list[str]:
        return [one.id for _, one in walk(page_of(tree, ["1", "2", "3", "4"], part).comments)]

    assert ids(CommentRange(1, 9)) == ["1"]
    assert ids(CommentRange(3, 9)) == ["1", "11", "2"]
    assert ids(CommentRange(3, 1)) == ["1", "2", "3"]
    assert ids(CommentRange(2, 1, offset=1)) == ["2", "3"]
    assert len(ids(CommentRange(99, 9))) == 7
    page = page_of(tree, ["1", "2", "3", "4"], CommentRange(2, 2))
    assert [one.more for _, one in walk(page.comments)] == [3, 0]
    assert page.next_offset == 2
    assert page_of(tree, ["1", "2", "3", "4", "5"], CommentRange(99, 9), gone={"5"}).next_offset is None
