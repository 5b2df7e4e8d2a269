"""Reddit by whatever route is open, and what is said when none is."""

from datetime import datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from explorer.schema.errors import ToolError
from explorer.sources.reddit.items import Post
from explorer.sources.reddit.keyless import ArcticShift
from explorer.sources.reddit.reddit import Access, Reddit, Routed
from explorer.sources.reddit.routes import PostName, PostsQuery, RouteClosedError
from explorer.sources.threads import CommentRange, Thread, walk
from explorer.text.rendering import own
from sources.loopback import NOW, Answer, Handler, Route, Site, as_json, no_pause, open_plain_web, replaying, serving
from sources.reddit_site import (
    FRESH,
    OLD,
    SECRET,
    SHELL,
    TOKEN,
    access_of,
    api_routes,
    archive_routes,
    comment,
    entry,
    feed,
    feed_routes,
    listing,
    open_reddit,
    post,
)
from thoroughness import each_slow_but

ARCHIVED = [
    post(1, score=300, num_comments=4, created_utc=OLD - 50, is_self=True, selftext="Which &gt; line?"),
    post(2, score=900, created_utc=OLD - 40, title="Kites &amp; wind"),
    post(3, score=1, num_comments=0, created_utc=FRESH),
]
P1 = PostName("p1")


def outline(thread: Thread[Post]) -> list[str]:
    """One word per comment: level and id, with the state of those without text."""
    return [f"{level}:{one.id}{one.state}" for level, one in walk(thread.comments)]


async def test_the_api_comes_first() -> None:
    """With credentials the API answers, and nothing is missing from it."""
    with serving(api_routes() | archive_routes(ARCHIVED) | feed_routes()) as site:
        async with open_reddit(site, "app", SECRET) as reddit:
            found, routed = await reddit.posts(PostsQuery("kites", time="week"))
            nothing, _ = await reddit.posts(PostsQuery("kites", sort="controversial", words="no such thing"))
    assert [(one.id, one.points, one.marks, one.state) for one in found.posts] == [
        ("p1", 10, (), ""),
        ("p2", 20, ("pinned", "nsfw"), "removed"),
    ]
    assert routed == Routed("reddit-api", own("its API"), ())
    assert nothing.posts == ()
    assert parse_qs(urlsplit(site.paths()[1]).query) == {"limit": ["25"], "t": ["week"], "raw_json": ["1"]}
    assert {"q": ["no such thing"], "restrict_sr": ["1"], "sort": ["comments"]}.items() <= parse_qs(
        urlsplit(site.paths()[2]).query
    ).items()


async def test_stubs_are_expanded() -> None:
    """Stubs are asked for as far as the page needs it, removed comments are shown as such, and the rest is counted."""
    with serving(api_routes()) as site:
        async with open_reddit(site, "app", SECRET) as reddit:
            thread, _ = await reddit.thread(P1, CommentRange(50, 6))
    assert outline(thread) == [
        *("0:c1", "1:c11", "2:c111", "1:c12", "0:c2deleted", "0:c3removed", "1:c31", "0:c4", "1:c41"),
    ]
    assert {one.id: one.points for _, one in walk(thread.comments)}["c12"] is None
    assert (thread.total, thread.next_offset) == (9, None)
    posted = [parse_qs(asked.body.decode()) for asked in site.asked if asked.path == "/api/morechildren"]
    assert [form["children"] for form in posted] == [["c4,c5,c12,c13"], ["c42"]]
    assert posted[0]["link_id"] == ["t3_p1"]


async def test_a_small_page_expands_nothing() -> None:
    """What is shown already needs no further request."""
    with serving(api_routes()) as site:
        async with open_reddit(site, "app", SECRET) as reddit:
            thread, _ = await reddit.thread(P1, CommentRange(2, 1))
    assert outline(thread) == ["0:c1", "0:c2deleted"]
    assert (thread.comments[0].more, thread.next_offset) == (4, 2)
    assert len(site.asked) == 2


async def test_a_later_page() -> None:
    """A page behind the held comments is fetched by the ids of the stub."""
    with serving(api_routes()) as site:
        async with open_reddit(site, "app", SECRET) as reddit:
            thread, _ = await reddit.thread(P1, CommentRange(1, 2, offset=3))
    assert outline(thread) == ["0:c4"]
    assert [path for path in site.paths() if "more" in path] == ["/api/morechildren"]


async def test_a_failed_expansion() -> None:
    """When a stub is refused, the thread is shown as it is, the rest counted."""
    routes = api_routes() | {"/api/morechildren": as_json({"message": "Forbidden", "error": 403}, 403)}
    with serving(routes) as site:
        async with open_reddit(site, "app", SECRET) as reddit:
            thread, _ = await reddit.thread(P1, CommentRange(50, 6))
    assert outline(thread) == ["0:c1", "1:c11", "0:c2deleted", "0:c3removed", "1:c31"]


async def test_below_a_comment() -> None:
    """A comment may be asked for; one that is not there is told."""
    with serving(api_routes()) as site:
        async with open_reddit(site, "app", SECRET) as reddit:
            thread, _ = await reddit.thread(PostName("p1", "c11"), CommentRange(50, 6))
            with pytest.raises(ToolError, match="no such comment"):
                await reddit.thread(PostName("p1", "zz"), CommentRange(50, 6))
    assert (outline(thread), thread.root, thread.total) == (["0:c11", "1:c111"], "c11", 1)


@pytest.mark.parametrize("services", ["blocked", "refused"])
async def test_without_a_key_the_archive(services: str) -> None:
    """Without a token, or with the wrong one, the archive answers, and it is said why and what it lacks."""
    secret = "wrong" if services == "refused" else ""
    blocked: dict[str, Route] = {"/r/kites/hot": SHELL, "/comments/p1": SHELL}
    with serving(api_routes() | blocked | archive_routes(ARCHIVED) | feed_routes()) as site:
        async with open_reddit(site, "app" if secret else "", secret) as reddit:
            found, routed = await reddit.posts(PostsQuery("kites"))
            count = len(site.asked)
            thread, _ = await reddit.thread(P1, CommentRange(50, 6))
            assert not [path for path in site.paths()[count:] if "/api/" not in path or "token" in path]
    assert routed.via == "reddit-archive"
    assert "36 hours" in routed.notes[0]
    assert "the API: " in routed.notes[1]
    assert ("credentials were refused" if secret else "a web page instead of data") in routed.notes[1]
    assert SECRET not in str(routed)
    assert TOKEN not in str(routed)
    assert found.note.startswith("The archive lists by time only")
    assert [(one.id, one.points, one.comments, one.title) for one in found.posts] == [
        ("p3", None, None, "Kites & lines 3"),
        ("p2", 900, 2, "Kites & wind"),
        ("p1", 300, 4, "Kites & lines 1"),
    ]
    assert outline(thread) == ["0:a2", "1:a21", "0:a1", "0:a3"]
    assert [one.points for _, one in walk(thread.comments)] == [9, 5, 2, None]
    assert thread.comments[1].text == "> Low"
    assert thread.post.text == "Which > line?"
    assert (thread.total, thread.next_offset) == (4, 3)


async def test_the_public_hosts_without_a_key() -> None:
    """Without credentials and without a stand-in the API is not asked at all, and the reason is given."""
    async with open_plain_web() as web, Reddit.open(access_of(web), Access()) as reddit:
        assert "REDDIT_CLIENT_ID" in str(reddit._absent)
        assert list(reddit._routes) == ["the archive", "the feeds"]


@pytest.mark.parametrize(
    ("sort", "time", "ids"),
    [("new", "", ["p3", "p2", "p1"]), ("top", "", ["p2", "p1", "p3"]), ("top", "day", ["p3"])],
)
async def test_the_archive_ranks_what_it_has(sort: str, time: str, ids: list[str]) -> None:
    """The archive knows times only: the highest are those among its newest, and it says so."""
    with serving(archive_routes(ARCHIVED)) as site:
        async with open_plain_web() as web:
            found = await ArcticShift(web, site.url, lambda: NOW).posts(PostsQuery("kites", sort, time=time))
    assert [one.id for one in found.posts] == ids
    assert ("most points among" in found.note) == (sort == "top")


async def test_the_archive_page_by_page() -> None:
    """For the highest, the archive is read three pages back."""
    many = [post(number, created_utc=OLD - number, score=number) for number in range(1, 500)]
    with serving(archive_routes(many)) as site:
        async with open_plain_web() as web:
            found = await ArcticShift(web, site.url, lambda: NOW).posts(PostsQuery("kites", "top", 5))
        assert len(site.asked) == 3
    assert [one.points for one in found.posts] == [300, 299, 298, 297, 296]


async def test_a_search_that_takes_too_long() -> None:
    """The archive's timeout is met by a narrower search, once."""
    asked: list[dict[str, list[str]]] = []

    def slow(handler: Handler) -> Answer:
        asked.append(parse_qs(urlsplit(handler.path).query))
        if "after" not in asked[-1]:
            return as_json({"data": None, "error": "Timeout. Maybe slow down a bit"}, 422)
        return as_json({"data": [post(1)]})

    with serving({"/api/posts/search": slow}) as site:
        async with open_plain_web() as web:
            archive = ArcticShift(web, site.url, lambda: NOW, no_pause)
            assert len((await archive.posts(PostsQuery("kites", words="line"))).posts) == 1
    assert len(asked) == 2
    assert int(asked[1]["after"][0]) == int(NOW.timestamp()) - 90 * 86_400


@pytest.mark.parametrize(
    "answer", [Answer(b"oops"), as_json({"data": None}), as_json([1]), Answer(b"[" * 100_000), as_json({}, 500)]
)
async def test_a_broken_archive(answer: Answer) -> None:
    """What is nothing of an archive closes the route."""
    with serving({"/api/posts/search": answer, "/api/posts/ids": answer, "/api/comments/tree": answer}) as site:
        async with open_plain_web() as web:
            archive = ArcticShift(web, site.url, lambda: NOW, no_pause)
            with pytest.raises(RouteClosedError):
                await archive.posts(PostsQuery("kites"))
            with pytest.raises(RouteClosedError):
                await archive.thread(P1, CommentRange())


async def test_a_broken_answer_about_one_comment() -> None:
    """What the archive says of the comment asked for may be broken, too: the route is closed, and the run goes on."""
    with serving(archive_routes(ARCHIVED) | {"/api/comments/ids": Answer(b"oops")}) as site:
        async with open_plain_web() as web:
            with pytest.raises(RouteClosedError, match="cannot be read"):
                await ArcticShift(web, site.url, lambda: NOW).thread(PostName("p1", "a2"), CommentRange())


async def test_what_the_archive_cannot() -> None:
    """It searches one subreddit at a time, has not every post, and says when it has none."""
    with serving(archive_routes(ARCHIVED)) as site:
        async with open_plain_web() as web:
            archive = ArcticShift(web, site.url, lambda: NOW)
            for name in ("all", "kites+lines"):
                with pytest.raises(RouteClosedError, match="one subreddit at a time"):
                    await archive.posts(PostsQuery(name))
            with pytest.raises(RouteClosedError, match="no posts of r/nobody of that time"):
                await archive.posts(PostsQuery("nobody", time="week"))
            with pytest.raises(RouteClosedError, match="no post zzz"):
                await archive.thread(PostName("zzz"), CommentRange())
            assert (await archive.posts(PostsQuery("kites", words="submarine"))).posts == ()
            below = await archive.thread(PostName("p1", "a2"), CommentRange())
    assert outline(below)[0] == "0:a2"


@pytest.mark.slow
async def test_the_feeds_come_last() -> None:
    """Without key and archive the feeds answer: texts and links, no numbers, no tree, and it is said."""
    blocked: dict[str, Route] = {"/r/kites/hot": SHELL, "/comments/p1": SHELL}
    with serving(blocked | feed_routes()) as site:
        async with open_reddit(site) as reddit:
            found, routed = await reddit.posts(PostsQuery("kites"))
            nothing, _ = await reddit.posts(PostsQuery("kites", words="submarine"))
            thread, read = await reddit.thread(P1, CommentRange(1, 6))
            with pytest.raises(ToolError, match="does not contain that comment"):
                await reddit.thread(PostName("p1", "zz"), CommentRange())
    assert routed.via == "reddit-feed"
    assert "no scores" in routed.notes[0]
    assert "which comment answers which is not known" in read.notes[0]
    assert "the API: " in routed.notes[1]
    assert "the archive: it is not available" in routed.notes[1]
    assert [(one.id, one.title, one.author, one.text, one.url, one.points) for one in found.posts] == [
        ("p1", "Kites & strings", "di", "Which string?", "", None),
        ("p2", "Kites & strings", "di", "", "https://kites.example/?a=1", None),
    ]
    assert found.posts[0].time == int(datetime.fromisoformat("2026-08-10T10:00:00Z").timestamp())
    assert found.posts[0].subreddit == "kites"
    assert nothing.posts == ()
    assert outline(thread) == ["0:f1"]
    assert (thread.total, thread.next_offset) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "path"),
    [
        (PostsQuery("kites", "top", time="week"), "/r/kites/top/.rss?t=week"),
        (PostsQuery("kites", words="a b"), "/r/kites/search.rss?q=a+b&restrict_sr=1&sort=relevance"),
        (PostsQuery("all", "new", words="a"), "/search.rss?q=a&sort=new"),
    ],
)
async def test_addresses_of_feeds(query: PostsQuery, path: str) -> None:
    """Each list and search has a feed of its own."""
    with serving({path.partition("?")[0]: feed(entry("t3_p1", "x"))}) as site:
        async with open_reddit(site) as reddit:
            await reddit.posts(query)
    assert site.paths()[-1] == path


BOMB = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><feed>&b;</feed>'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "words"),
    each_slow_but(
        3,
        [
            (Answer(b"", 429, headers={"retry-after": "300"}), "429"),
            (Answer(b"<html>welcome</html>"), "not a feed"),
            (Answer(BOMB, 200, "application/atom+xml"), "not a feed"),
            (Answer(b"garbage", 200, "application/atom+xml"), "no entries for r/kites"),
            (feed(), "no entries for r/kites"),
        ],
    ),
)
async def test_no_route_at_all(answer: Answer, words: str) -> None:
    """When no route is open, each is named with its reason, and nothing is made of an empty answer."""
    with serving({"/r/kites/hot": SHELL, "/r/kites/.rss": answer}) as site:
        async with open_reddit(site) as reddit:
            with pytest.raises(
                ToolError, match=r"Reddit is not available for r/kites\. the API: .*; the archive: "
            ) as one:
                await reddit.posts(PostsQuery("kites"))
            asked = len(site.asked)
            if "429" in words:
                with pytest.raises(ToolError):
                    await reddit.posts(PostsQuery("kites"))
                assert [path for path in site.paths()[asked:] if ".rss" in path] == []
    assert f"; the feeds: it {'is' if '429' in words else ''}" in one.value.message
    assert words in one.value.message
    assert "say that Reddit could not be read" in one.value.message


async def test_a_refusal_ends_the_search() -> None:
    """What Reddit itself refuses is not looked for elsewhere: it is told."""
    private = as_json({"message": "Forbidden", "error": 403, "reason": "private"}, 403)
    with serving(api_routes() | {"/r/kites/hot": private} | archive_routes(ARCHIVED)) as site:
        async with open_reddit(site, "app", SECRET) as reddit:
            with pytest.raises(ToolError, match=r"does not show r/kites through its API: it is private"):
                await reddit.posts(PostsQuery("kites"))
    assert len(site.asked) == 2


async def test_pages_of_posts() -> None:
    """A post's address is read as its thread, in a page's form; other addresses are not."""
    with serving(api_routes()) as site:
        async with open_reddit(site, "app", SECRET) as reddit:
            pages = reddit
            page = await pages.read("https://old.reddit.com/r/kites/comments/p1/kites/")
            assert await pages.read("https://www.reddit.com/r/kites/") is None
        async with open_reddit(site) as reddit:
            cut = await reddit.read("https://redd.it/p1")
    assert page
    assert page.url == "https://www.reddit.com/r/kites/comments/p1/kites_lines_1/"
    assert (page.title, page.via, page.author, page.kind) == ("Kites & lines 1", "reddit-api", "ada", "comments")
    assert "Text of the post: Which line?" in page.text
    assert "- bo (" in page.text
    assert page.flags == ()
    assert cut
    assert cut.flags == ("truncated",)
    assert any("get_comments" in note for note in cut.notes)


async def test_a_thread_without_its_post() -> None:
    """An answer that lacks the post itself closes the route, and the archive is asked."""
    odd = as_json([listing(), listing(comment("c1", "t3_p1"))])
    with serving(api_routes() | {"/comments/p1": odd} | archive_routes(ARCHIVED)) as site:
        async with open_reddit(site, "app", SECRET) as reddit:
            _, routed = await reddit.thread(P1, CommentRange())
    assert routed.via == "reddit-archive"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["oauth", "blocked"])
async def test_the_recorded_service(mode: str) -> None:
    """The recorded Reddit is read through its API with credentials; without them each closed route is named."""
    with replaying("--reddit", mode) as url:
        async with open_reddit(url, "app", SECRET) as reddit:
            found, routed = await reddit.posts(PostsQuery("netsec", limit=10))
            thread, _ = await reddit.thread(PostName("3hahrw"), CommentRange(500, 30))
            with pytest.raises(ToolError, match="no such thing"):
                await reddit.posts(PostsQuery("nobody_there"))
        if mode == "blocked":
            async with open_reddit(url) as reddit:
                with pytest.raises(ToolError, match=r"the API: it shows a web page.*; the archive: .*; the feeds: "):
                    await reddit.posts(PostsQuery("netsec"))
    assert (len(found.posts), routed.via) == (10, "reddit-api")
    assert thread.total == 537
    assert sum(1 for _ in walk(thread.comments)) >= 470


async def test_an_unreachable_service() -> None:
    """When nobody answers, the result says so for each route, and nothing else fails."""
    absent = Site({})
    absent.port = 9
    async with open_reddit(absent) as reddit:
        with pytest.raises(ToolError, match=r"the API: .*; the archive: .*; the feeds: "):
            await reddit.posts(PostsQuery("kites"))
