"""A small Reddit of our own, in the wire forms of its API, its archive and its feeds, with invented posts."""

import base64
import gzip
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from explorer.documents.parsing.parser import DocumentParser, Parser, TrustingParser
from explorer.sources.http.caller import Caller
from explorer.sources.http.fetch import Web
from explorer.sources.page import SiteAccess
from explorer.sources.reddit.reddit import Access, Reddit
from sources.loopback import DATA, NOW, Answer, Handler, Route, Site, as_json, open_plain_web

Fields = dict[str, Any]
RECORDED = DATA / "reddit_snapshot"
SECRET = "s3cr3t-of-the-app"
TOKEN = "t0ken-of-the-hour"
OLD = int(NOW.timestamp()) - 40 * 3_600
"""Old enough for the archive's numbers to mean something."""
FRESH = int(NOW.timestamp()) - 3_600
SHELL = Answer(b"<!doctype html><html><body>shell</body></html>", 403, "text/html; charset=utf-8")


def recorded(name: str) -> bytes:
    """A recording; the test is skipped where it is absent."""
    path = RECORDED / name
    if not path.exists():
        pytest.skip(f"recordings are not here: {path}")
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def post(number: int, **fields: object) -> Fields:
    """A post as it is recorded."""
    return {
        "id": f"p{number}",
        "name": f"t3_p{number}",
        "title": f"Kites & lines {number}",
        "author": "ada",
        "subreddit": "kites",
        "permalink": f"/r/kites/comments/p{number}/kites_lines_{number}/",
        "url": f"https://www.kites.example/{number}",
        "selftext": "",
        "is_self": False,
        "score": number * 10,
        "num_comments": number,
        "created_utc": float(OLD),
        "over_18": False,
        "stickied": False,
        **fields,
    }


def comment(comment_id: str, above: str, *replies: Fields, **fields: object) -> Fields:
    """A comment with its replies, as a tree has it."""
    return {
        "kind": "t1",
        "data": {
            "id": comment_id,
            "author": "bo",
            "body": f"Words of {comment_id}",
            "parent_id": above,
            "link_id": "t3_p1",
            "score": 5,
            "created_utc": OLD + 60.0,
            "replies": listing(*replies) if replies else "",
            **fields,
        },
    }


def more(above: str, *ids: str, count: int | None = None) -> Fields:
    """A stub; without ids it says `continue this thread`."""
    number = len(ids) if count is None else count
    return {
        "kind": "more",
        "data": {"count": number, "id": ids[0] if ids else "_", "parent_id": above, "children": list(ids)},
    }


def listing(*children: Fields) -> Fields:
    """An envelope."""
    return {"kind": "Listing", "data": {"after": None, "children": list(children)}}


def posts_listing(*posts: Fields) -> Fields:
    """A subreddit's list."""
    return listing(*({"kind": "t3", "data": one} for one in posts))


THREAD: list[Fields] = [
    posts_listing(post(1, num_comments=9, selftext="Which line?", is_self=True)),
    listing(
        comment("c1", "t3_p1", comment("c11", "t1_c1", more("t1_c11")), more("t1_c1", "c12", "c13")),
        comment("c2", "t3_p1", author="[deleted]", body="[deleted]"),
        comment("c3", "t3_p1", comment("c31", "t1_c3"), body="[removed]"),
        more("t3_p1", "c4", "c5", count=3),
    ),
]
EXPANSION: Fields = {
    "json": {
        "errors": [],
        "data": {
            "things": [
                comment("c4", "t3_p1"),
                comment("c41", "t1_c4"),
                comment("c12", "t1_c1", score_hidden=True),
                more("t1_c4", "c42"),
            ]
        },
    }
}


def token(handler: Handler) -> Answer:
    """A token for the right app."""
    right = "Basic " + base64.b64encode(f"app:{SECRET}".encode()).decode()
    if handler.headers["Authorization"] != right:
        return as_json({"message": "Unauthorized", "error": 401}, 401)
    return as_json({"access_token": TOKEN, "token_type": "bearer", "expires_in": 3600, "scope": "*"})


def for_readers_with_a_token(answer: Answer) -> Route:
    """Only with the token; others see a web page."""

    def judged(handler: Handler) -> Answer:
        return answer if handler.headers["Authorization"] == f"bearer {TOKEN}" else SHELL

    return judged


def api_routes() -> dict[str, Route]:
    """Reddit's API."""
    below = [THREAD[0], listing(comment("c11", "t1_c1", comment("c111", "t1_c11")))]

    def thread(handler: Handler) -> Answer:
        asked = parse_qs(urlsplit(handler.path).query)
        return as_json(below if asked.get("comment") == ["c11"] else THREAD)

    pinned = post(2, stickied=True, over_18=True, selftext="[removed]")
    return {
        "/api/v1/access_token": token,
        "/r/kites/hot": for_readers_with_a_token(as_json(posts_listing(post(1), pinned))),
        "/r/kites/search": for_readers_with_a_token(as_json(posts_listing())),
        "/comments/p1": thread,
        "/api/morechildren": for_readers_with_a_token(as_json(EXPANSION)),
    }


def archive_routes(posts: Sequence[Fields]) -> dict[str, Route]:
    """The archive; `before` and `after` are kept."""

    def search(handler: Handler) -> Answer:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(handler.path).query).items()}
        words = asked.get("query", "").lower().split()
        found = [
            one
            for one in sorted(posts, key=lambda one: -one["created_utc"])
            if asked["subreddit"].lower() == one["subreddit"]
            and int(asked.get("after", 0)) <= one["created_utc"] < int(asked.get("before", 1 << 40))
            and all(word in one["title"].lower() for word in words)
        ]
        return as_json({"data": found[: int(asked["limit"])]})

    def by_id(handler: Handler) -> Answer:
        asked = parse_qs(urlsplit(handler.path).query)["ids"][0]
        return as_json({"data": [one for one in posts if one["id"] == asked]})

    tree = [
        comment("a1", "t3_p1", body="&gt; Low", score=2),
        comment("a2", "t3_p1", comment("a21", "t1_a2"), score=9),
        comment("a3", "t3_p1", created_utc=FRESH, score=1),
        more("t3_p1", "a4"),
    ]
    return {
        "/api/posts/search": search,
        "/api/posts/ids": by_id,
        "/api/comments/tree": as_json({"data": tree}),
        "/api/comments/ids": as_json({"data": [comment("a2", "t3_p1")["data"]]}),
    }


def feed(*entries: str) -> Answer:
    """An Atom feed as Reddit writes it."""
    body = f'<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom">{"".join(entries)}</feed>'
    return Answer(body.encode(), 200, "application/atom+xml; charset=UTF-8")


def entry(name: str, text: str, link: str = "") -> str:
    """An entry of a feed."""
    words = (
        f"&lt;!-- SC_OFF --&gt;&lt;div class=&quot;md&quot;&gt;&lt;p&gt;{text}&lt;/p&gt;&lt;/div&gt;" if text else ""
    )
    around = f"&lt;span&gt;&lt;a href=&quot;{link}&quot;&gt;[link]&lt;/a&gt;&lt;/span&gt;" if link else ""
    return (
        f"<entry><author><name>/u/di</name></author><id>{name}</id><title>Kites &amp;amp; strings</title>"
        '<link href="https://www.reddit.com/r/kites/comments/p1/kites/"/><published>2026-08-10T10:00:00+00:00</published>'
        f'<content type="html">{words} submitted by /u/di {around}</content></entry>'
    )


def feed_routes() -> dict[str, Route]:
    """The feeds."""
    own = "https://www.reddit.com/r/kites/comments/p1/kites/"
    return {
        "/r/kites/.rss": feed(entry("t3_p1", "Which string?", own), entry("t3_p2", "", "https://kites.example/?a=1")),
        "/r/kites/search.rss": feed(),
        "/comments/p1/.rss": feed(entry("t3_p1", "Which?", own), entry("t1_f1", "Flax."), entry("t1_f2", "Silk.")),
    }


def access_of(web: Web, parser: DocumentParser | None = None) -> SiteAccess:
    """What connecting to a site takes; without a parser for tests that read no feed."""
    return SiteAccess(web, web.guard, Caller(), lambda: NOW, parser or TrustingParser())


@asynccontextmanager
async def open_reddit(site: Site | str, identity: str = "", secret: str = "") -> AsyncGenerator[Reddit]:
    """Reddit by all routes, each of them at one server."""
    url = site if isinstance(site, str) else site.url
    async with (
        open_plain_web() as web,
        Parser() as parser,
        Reddit.open(access_of(web, parser), Access(url, identity, secret)) as reddit,
    ):
        yield reddit
