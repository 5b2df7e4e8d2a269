"""A small Hacker News of our own, in the two services' wire forms, with invented stories."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from explorer.documents.parsing.parser import TrustingParser
from explorer.sources.hackernews.hackernews import HackerNews
from explorer.sources.http.fetch import Web
from sources.loopback import Answer, Handler, Route, Site, as_json

Item = dict[str, Any]

TEN = 1786356000
"""2026-08-10T10:00:00Z."""

STORY: Item = {
    "id": 10,
    "type": "story",
    "by": "ada",
    "time": TEN,
    "title": "A lighthouse of paper &amp; glue",
    "url": "https://www.paper.example/lighthouse?x=1",
    "score": 512,
    "descendants": 7,
    "kids": [22, 21, 23, 24],
}
ASK: Item = {
    "id": 11,
    "type": "story",
    "by": "bo",
    "time": TEN,
    "title": "Ask HN: Which glue?",
    "text": "I tried <i>three</i>.<p>None held.",
    "score": 1,
    "descendants": 0,
}
JOB: Item = {"id": 12, "type": "job", "by": "yard", "time": TEN, "title": "The yard is hiring", "url": ""}
DEAD: Item = {"id": 13, "type": "story", "by": "x", "time": TEN, "title": "Spam", "dead": True}
DELETED: Item = {"id": 14, "type": "story", "time": TEN, "deleted": True}
POLL: Item = {
    "id": 15,
    "type": "poll",
    "by": "cy",
    "time": TEN,
    "title": "Poll: Paper or card?",
    "score": 9,
    "descendants": 0,
    "parts": [31, 32],
}
COMMENTS: list[Item] = [
    {"id": 21, "type": "comment", "by": "bo", "time": TEN + 60, "parent": 10, "text": "Second best.", "kids": [25]},
    {
        "id": 22,
        "type": "comment",
        "by": "al",
        "time": TEN + 120,
        "parent": 10,
        "text": "Best.<p>Really.",
        "kids": [26, 27],
    },
    {"id": 23, "type": "comment", "time": TEN + 180, "parent": 10, "deleted": True, "kids": [28]},
    {"id": 24, "type": "comment", "by": "tr", "time": TEN, "parent": 10, "dead": True, "text": "[flagged]"},
    {"id": 25, "type": "comment", "by": "ada", "time": TEN, "parent": 21, "text": "Thanks."},
    {"id": 26, "type": "comment", "by": "bo", "time": TEN, "parent": 22, "text": "Why?"},
    {"id": 28, "type": "comment", "by": "di", "time": TEN, "parent": 23, "text": "Kept under a deleted one."},
    {"id": 31, "type": "pollopt", "poll": 15, "text": "Paper", "score": 5},
    {"id": 32, "type": "pollopt", "poll": 15, "text": "Card", "score": 4},
]
ITEMS: dict[int, Item] = {item["id"]: item for item in [STORY, ASK, JOB, DEAD, DELETED, POLL, *COMMENTS]}


def node(item_id: int, items: Mapping[int, Item] = ITEMS) -> Item:
    """An item as Algolia gives it: nested, children by id, removed ones without author and text."""
    item = items[item_id]
    children = [node(kid, items) for kid in sorted(item.get("kids", [])) if kid in items]
    is_gone = bool(item.get("deleted"))
    return {
        "id": item_id,
        "type": item["type"],
        "author": None if is_gone else item.get("by"),
        "text": None if is_gone else item.get("text"),
        "title": item.get("title"),
        "url": item.get("url"),
        "points": item.get("score"),
        "created_at_i": item.get("time"),
        "parent_id": item.get("parent"),
        "story_id": 10,
        "options": [],
        "children": children,
        "something_new": {"x": 1},
    }


def hit(item: Item) -> Item:
    """A story as a hit of the search; absent fields are missing or null."""
    return {
        "objectID": str(item["id"]),
        "title": item["title"],
        "url": item.get("url"),
        "author": item["by"],
        "points": item.get("score"),
        "num_comments": item.get("descendants"),
        "created_at_i": item.get("time"),
        "_tags": ["story"],
        "_highlightResult": {},
    }


def found(handler: Handler) -> Answer:
    """A search: all words must be in the title."""
    query = parse_qs(urlsplit(handler.path).query).get("query", [""])[0].lower().split()
    stories = [STORY, ASK]
    hits = [hit(story) for story in stories if all(word in story["title"].lower() for word in query)]
    return as_json({"hits": hits, "nbHits": len(hits) * 10, "page": 0, "query": " ".join(query)})


def hn_routes(*, has_tree: bool = True, has_items: bool = True) -> dict[str, Route]:
    """Routes of both services; either can be down."""
    down = Answer(b"<html>Bad gateway</html>", 502)
    routes: dict[str, Route] = {
        "/api/search": found if has_tree else down,
        "/api/search_by_date": found if has_tree else down,
        "/api/items/99": as_json({"status": 404, "error": "Not Found"}, 404),
        "/v0/topstories.json": as_json([10, 999, 13, 11, 14, 12, 15]),
        "/v0/jobstories.json": as_json([12]),
        "/v0/askstories.json": as_json([11]),
        "/v0/showstories.json": as_json([]),
        "/v0/beststories.json": as_json(None),
        "/v0/newstories.json": as_json({"surprise": True}),
    }
    for item_id, item in ITEMS.items():
        routes[f"/v0/item/{item_id}.json"] = as_json(item)
        routes[f"/api/items/{item_id}"] = as_json(node(item_id)) if has_tree else down
    for absent in (27, 99, 999):
        routes[f"/v0/item/{absent}.json"] = as_json(None)
    if not has_items:
        routes.update({path: down for path in routes if path.startswith("/v0/")})
    return routes


def client(web: Web, site: Site) -> HackerNews:
    """A reader of this Hacker News."""
    return HackerNews(web, TrustingParser(), f"{site.url}/v0/", f"{site.url}/api")
