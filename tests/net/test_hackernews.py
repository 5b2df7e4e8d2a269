"""Reading Hacker News through its two services, each standing in for the other."""

from collections.abc import Sequence

import pytest

from explorer.errors import ToolError
from explorer.net.hackernews import HnQuery, ServiceDownError, Thread
from explorer.net.hn_items import Comment, choose, walk
from net.hn_site import ITEMS, client, hn_routes, node
from net.loopback import Answer, as_json, open_web, serving


def outline(thread: Thread) -> list[str]:
    """One word per comment: level and id, with the state of those without text."""
    return [f"{level}:{comment.id}{comment.state}" for level, comment in walk(thread.comments)]


async def test_stories_keep_their_rank() -> None:
    """Null, dead and deleted items are skipped, jobs and polls stay, and the order is the list's."""
    with serving(hn_routes()) as site:
        async with open_web() as web:
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
        async with open_web() as web:
            assert len((await client(web, site).stories("top", 1)).stories) == 1
        assert len(site.asked) < 20


async def test_lists_that_are_none() -> None:
    """An empty list is empty; null and surprises are told."""
    with serving(hn_routes()) as site:
        async with open_web() as web:
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
        async with open_web() as web:
            assert [story.id for story in (await client(web, site).stories("top", 9)).stories] == [10, 12, 15]
            with pytest.raises(ToolError, match="unexpected"):
                await client(web, site).stories("ask", 9)


async def test_thread_from_the_tree() -> None:
    """Algolia's tree comes in Firebase's rank order, with removed comments and the replies under them."""
    with serving(hn_routes()) as site:
        async with open_web() as web:
            thread = await client(web, site).thread(10, 50, 6)
    assert outline(thread) == ["0:22", "1:26", "0:21", "1:25", "0:23deleted", "1:28", "0:24dead"]
    assert (thread.shown, thread.total) == (7, 7)
    assert thread.comments[0].text == "Best.\n\nReally."
    assert len(site.asked) == 2


async def test_thread_item_by_item() -> None:
    """With Algolia down the same thread comes from Firebase; absent replies are passed over."""
    with serving(hn_routes(has_tree=False)) as site:
        async with open_web() as web:
            thread = await client(web, site).thread(10, 50, 6)
    assert outline(thread) == ["0:22", "1:26", "0:21", "1:25", "0:23deleted", "1:28", "0:24dead"]
    assert thread.story.title == "A lighthouse of paper & glue"


async def test_thread_without_firebase() -> None:
    """With Firebase down the tree is enough, in the tree's own order."""
    with serving(hn_routes(has_items=False)) as site:
        async with open_web() as web:
            thread = await client(web, site).thread(10, 50, 6)
    assert outline(thread)[0] == "0:21"
    assert (thread.story.points, thread.story.comments, thread.total) == (512, None, 7)


async def test_both_services_down() -> None:
    """The failure names both."""
    with serving(hn_routes(has_tree=False, has_items=False)) as site:
        async with open_web() as web:
            with pytest.raises(ServiceDownError, match=r"API is not available.*search is not available"):
                await client(web, site).thread(10, 50, 6)
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
        async with open_web() as web:
            thread = await client(web, site).thread(16, 50, 6)
    assert (thread.shown, thread.total) == (0, 230)


async def test_top_comments_the_tree_lacks() -> None:
    """A top comment too new for Algolia is taken from Firebase and stands at its rank."""
    routes = hn_routes()
    tree = node(10)
    tree["children"] = [child for child in tree["children"] if child["id"] != 22]
    routes["/api/items/10"] = as_json(tree)
    with serving(routes) as site:
        async with open_web() as web:
            thread = await client(web, site).thread(10, 50, 6)
    assert outline(thread)[:3] == ["0:22", "1:26", "0:21"]


async def test_children_in_a_circle() -> None:
    """Ids that name each other as replies end somewhere."""
    routes = hn_routes(has_tree=False)
    routes["/v0/item/26.json"] = as_json(ITEMS[26] | {"kids": [22, 26]})
    with serving(routes) as site:
        async with open_web() as web:
            thread = await client(web, site).thread(10, 50, 20)
    assert thread.shown == 7


async def test_poll_options() -> None:
    """A poll's options come with their points, from Firebase when the tree has none."""
    with serving(hn_routes()) as site:
        async with open_web() as web:
            thread = await client(web, site).thread(15, 50, 6)
    assert thread.story.options == ("Paper (5 points)", "Card (4 points)")


async def test_what_is_no_story() -> None:
    """A comment's id and an unknown id are told apart, with what to do."""
    with serving(hn_routes()) as site:
        async with open_web() as web:
            with pytest.raises(ToolError, match=r"is a comment, not a story\. It stands under item 10"):
                await client(web, site).thread(21, 50, 6)
            with pytest.raises(ToolError, match="no item 99"):
                await client(web, site).thread(99, 50, 6)
    with serving(hn_routes(has_items=False)) as site:
        async with open_web() as web:
            with pytest.raises(ToolError, match="is a comment"):
                await client(web, site).thread(21, 50, 6)


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
        async with open_web() as web:
            found = await client(web, site).search(HnQuery(asked))
        assert len(site.asked) <= 6
    assert found.words == used
    assert [hit.story.id for hit in found.hits] == ids
    assert found.total == 10 * len(ids)


async def test_search_parameters() -> None:
    """Sort, time, tags and number of hits reach the service in its own form."""
    with serving(hn_routes()) as site:
        async with open_web() as web:
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
        async with open_web() as web:
            found = await client(web, site).search(HnQuery("x"))
    assert [hit.story.title for hit in found.hits] == ["(no title)", "Comment on: Paper & more"]
    assert found.hits[1].comment == "I use *glue*."
    assert found.total == 2


def test_choose() -> None:
    """The best replies to the best comments come before the last top comments, parents before their replies."""

    def comment(number: int, *replies: Comment) -> Comment:
        return Comment(number, replies=replies)

    tree = [comment(1, comment(11, comment(111)), comment(12)), comment(2), comment(3), comment(4)]
    assert [c.id for _, c in walk(choose(tree, 1, 9))] == [1]
    assert [c.id for _, c in walk(choose(tree, 3, 9))] == [1, 11, 2]
    assert [c.id for _, c in walk(choose(tree, 3, 1))] == [1, 2, 3]
    assert len(list(walk(choose(tree, 99, 9)))) == 7
