"""The bundled sample day as a network: an HTTP transport that answers for Hacker News and for the pages it links to.

The code above it runs unchanged, so a machine with nothing set up and no connection can see a whole run.
"""

import html
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import httpx2

from explorer.offline.sample_day import items as sample_day_search
from explorer.offline.sample_day.items import (
    SampleArticle,
    SampleComment,
    SampleDay,
    SampleStory,
    as_hn_html,
    load_sample_day,
)
from explorer.schema.messages import JsonObject

SAMPLE_NOW = datetime(2026, 3, 14, 18, 0, tzinfo=UTC)
"""The moment at which the sample day is looked at, so that ages make sense."""

PAGE_DOMAIN = ".example"
"""Pages live here and nowhere else: a domain that can never be registered."""
ITEM_PATH = re.compile(r".*/item/(\d+)\.json")
LIST_PATH = re.compile(r".*/(top|new|best|ask|show|job)stories\.json")
TREE_PATH = re.compile(r".*/items/(\d+)")
SEARCH_PATH = re.compile(r".*/(search|search_by_date)")


class SampleDayTransport(httpx2.AsyncBaseTransport):
    """Answers requests from a day, the bundled one if none is given; what is not in it is a 404."""

    def __init__(self, day: SampleDay | None = None) -> None:
        self._day = day or load_sample_day()
        self._stories = {story.id: story for story in self._day.stories}
        self._items = dict(_items(self._day))
        self._records = sample_day_search.indexed(self._day)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        if request.url.host.endswith(PAGE_DOMAIN):
            return self._page(request)
        for pattern, respond in self._routes():
            if match := pattern.fullmatch(request.url.path):
                return respond(request, match)
        return _not_found(request)

    def _routes(
        self,
    ) -> Iterator[tuple["re.Pattern[str]", Callable[[httpx2.Request, "re.Match[str]"], httpx2.Response]]]:
        yield ITEM_PATH, lambda request, match: _json(request, self._items.get(int(match[1])))
        yield LIST_PATH, lambda request, match: _json(request, self._list(match[1]))
        yield re.compile(r".*/maxitem\.json"), lambda request, _match: _json(request, max(self._items))
        yield TREE_PATH, self._tree
        yield SEARCH_PATH, self._search

    def _list(self, kind: str) -> list[int]:
        stories = list(self._day.stories)
        if kind == "new":
            stories.sort(key=lambda story: story.time, reverse=True)
        elif kind == "best":
            stories.sort(key=lambda story: story.score, reverse=True)
        elif kind in {"ask", "show"}:
            stories = [story for story in stories if story.title.startswith(f"{kind.title()} HN")]
        if kind == "job":
            return [story.id for story in stories if story.type == "job"]
        return [story.id for story in stories]

    def _tree(self, request: httpx2.Request, match: "re.Match[str]") -> httpx2.Response:
        story = self._stories.get(int(match[1]))
        return _not_found(request) if story is None else _json(request, sample_day_search.tree(self._day, story))

    def _search(self, request: httpx2.Request, match: "re.Match[str]") -> httpx2.Response:
        query = dict(request.url.params)
        try:
            return _json(
                request, sample_day_search.search(self._records, query, is_by_date=match[1] == "search_by_date")
            )
        except ValueError as error:
            return _json(request, {"message": f"invalid parameter: {error}", "status": 400}, 400)

    def _page(self, request: httpx2.Request) -> httpx2.Response:
        address = str(request.url.copy_with(query=None, fragment=None))
        article = self._day.articles.get(address) or self._day.articles.get(address.rstrip("/") + "/")
        if article is None:
            body = "<!doctype html><html><head><title>Not found</title></head><body><h1>Not found</h1></body></html>"
            return httpx2.Response(404, html=body, request=request)
        return httpx2.Response(200, html=_html(article), request=request)


def _not_found(request: httpx2.Request) -> httpx2.Response:
    return _json(request, {"error": "Not Found", "status": 404}, 404)


def _json(request: httpx2.Request, body: object, status: int = 200) -> httpx2.Response:
    content = json.dumps(body, ensure_ascii=False).encode()
    headers = {"content-type": "application/json; charset=utf-8"}
    return httpx2.Response(status, content=content, headers=headers, request=request)


def _items(day: SampleDay) -> Iterator[tuple[int, JsonObject]]:
    """Yield every item in the Firebase form: fields without a value are absent."""
    for story in day.stories:
        yield story.id, _story_item(story, [comment.id for comment in day.threads.get(story.id, ())])
        for option in story.options:
            item: JsonObject = {"id": option.id, "type": "pollopt", "by": story.by, "time": story.seconds}
            yield option.id, item | {"poll": story.id, "text": as_hn_html(option.text), "score": option.score}
        for parent, comment in day.replies(story):
            yield comment.id, _comment_item(parent, comment)


def _story_item(story: SampleStory, kids: list[int]) -> JsonObject:
    item: JsonObject = {
        "id": story.id,
        "type": story.type,
        "by": story.by,
        "time": story.seconds,
        "score": story.score,
        "title": html.escape(story.title, quote=False),
        "url": story.url,
        "text": as_hn_html(story.text),
        "kids": kids,
        "parts": [option.id for option in story.options],
        "descendants": story.descendants,
    }
    return {name: value for name, value in item.items() if value not in ("", [], None)}


def _comment_item(parent: int, comment: SampleComment) -> JsonObject:
    item: JsonObject = {
        "id": comment.id,
        "type": "comment",
        "parent": parent,
        "time": comment.seconds,
        "by": comment.by,
        "text": as_hn_html(comment.text),
        "kids": [reply.id for reply in comment.replies],
        "deleted": comment.deleted,
        "dead": comment.dead,
    }
    return {name: value for name, value in item.items() if value}


def _html(article: SampleArticle) -> str:
    """Return a small page as the web has them: navigation and boilerplate around the article."""
    title, author, site = (html.escape(text) for text in (article.title, article.author, article.site))
    paragraphs = "\n".join(f"<p>{html.escape(text, quote=False)}</p>" for text in article.paragraphs)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title} | {site}</title>
<meta name="author" content="{author}">
<meta property="og:title" content="{title}">
<meta property="og:site_name" content="{site}">
<meta property="article:published_time" content="{article.published}T06:00:00Z">
</head>
<body>
<header><a href="/">{site}</a></header>
<nav><a href="/">Home</a> <a href="/archive">Archive</a> <a href="/about">About</a></nav>
<main>
<article>
<h1>{title}</h1>
<p class="byline">By {author}, <time datetime="{article.published}">{article.published}</time></p>
{paragraphs}
</article>
</main>
<aside><h2>Subscribe</h2><p>Get new posts by mail. We use no cookies.</p></aside>
<footer><p>An invented page of the sample day. All names are fictional.</p></footer>
</body>
</html>
"""
