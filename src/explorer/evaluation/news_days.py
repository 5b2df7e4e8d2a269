"""News days: recorded days of Hacker News, served to runs without the network, and what a digest of one should have.

A day is an answer of Hacker News' search service (https://hn.algolia.com/api) with all stories of that day, as a file
`2026-08-11.json`. What is right follows from the day itself: its biggest stories, their addresses and their figures.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote, urlsplit

import httpx2

from explorer.evaluation.questions import NewsDay, NewsStory
from explorer.offline.sample_day.items import SampleDay, SampleStory
from explorer.offline.sample_day.transport import SampleDayTransport
from explorer.schema.services import Services
from explorer.schema.settings import Settings
from explorer.text.citations import without_references
from explorer.text.urls import url_key

BIGGEST = 10
"""How many stories of a day a reader would name."""
NOTABLE = 30
"""Stories below this place are not what a short digest is for."""
ITEM = re.compile(r"news\.ycombinator\.com/item\?id=(\d+)")
POINTS = re.compile(r"(\d[\d,]*) (?:points|分)")
COMMENTS = re.compile(r"(\d[\d,]*) (?:comments|条评论)")
REQUEST_BYTES = 16_000


def biggest(day: NewsDay, count: int) -> list[NewsStory]:
    """Return the stories with the best sum of their places by points and by comments."""
    by_points = _places(day.stories, lambda story: story.points)
    by_comments = _places(day.stories, lambda story: story.comments)
    return sorted(day.stories, key=lambda one: (by_points[one.id] + by_comments[one.id], one.id))[:count]


def _places(stories: Sequence[NewsStory], value: Callable[[NewsStory], int]) -> dict[int, int]:
    ordered = sorted(stories, key=lambda story: (-value(story), story.id))
    return {story.id: place for place, story in enumerate(ordered)}


def measured_day(day: NewsDay, report: str, is_named: Callable[[str, str], bool]) -> dict[str, int]:
    """Return what a digest has of its day, as fields of a score.

    Args:
        day: The day.
        report: The digest, with its references.
        is_named: Returns whether a title is in a text.
    """
    body, known = without_references(report), {story.id: story for story in day.stories}
    linked = list(dict.fromkeys(int(found) for found in ITEM.findall(report)))
    addresses = {url_key(url.rstrip(">).,")) for url in re.findall(r"https?://[^\s<>\"]+", report)}
    wanted = biggest(day, BIGGEST)
    named = [one for one in wanted if one.id in linked or url_key(one.url) in addresses or is_named(one.title, body)]
    notable = {story.id for story in biggest(day, NOTABLE)}
    figures = [pair for line in body.splitlines() for pair in _figures(line, known)]
    return {
        "stories": len(named),
        "stories_of": len(wanted),
        "discussed": sum(story.id in linked for story in named),
        "linked": len(linked),
        "linked_of_day": sum(one in known for one in linked),
        "linked_notable": sum(one in notable for one in linked),
        "figures": len(figures),
        "figures_right": sum(stated == true for stated, true in figures),
    }


def _figures(line: str, known: Mapping[int, NewsStory]) -> list[tuple[int, int]]:
    """Return the points and comments that a line states of its one story, each with what the day has."""
    stories = {int(found) for found in ITEM.findall(line)} & known.keys()
    if len(stories) != 1:
        return []
    story = known[stories.pop()]
    pairs = ((POINTS, story.points), (COMMENTS, story.comments))
    return [(int(found.replace(",", "")), true) for pattern, true in pairs for found in pattern.findall(line)]


@asynccontextmanager
async def served_day(settings: Settings, day: NewsDay | None) -> AsyncGenerator[Settings]:
    """Provide settings with which a run reads a recorded day in place of Hacker News; without a day, as they are.

    A server on loopback answers as both services do, and as a reader for the texts of articles.
    """
    if day is None:
        yield settings
        return
    service = _DayService(day)
    server = await asyncio.start_server(service.answer, "127.0.0.1", 0, limit=REQUEST_BYTES)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        given = settings.services.model_dump()
        hosts = tuple(dict.fromkeys((*settings.services.allow_hosts, "127.0.0.1")))
        of_day = {"hn_api_url": f"{url}/v0", "hn_search_url": f"{url}/api/v1", "reader_url": f"{url}/reader"}
        services = Services(**(given | of_day | {"archive_url": "none", "allow_hosts": hosts}))
        yield settings.model_copy(update={"services": services})


class _DayService:
    """Answers for Hacker News' two services and for a reader, from one day."""

    def __init__(self, day: NewsDay) -> None:
        end = datetime.fromisoformat(day.date).replace(tzinfo=UTC) + timedelta(days=1)
        stories = sorted(day.stories, key=lambda story: _rank(story, end), reverse=True)
        self._hacker_news = SampleDayTransport(SampleDay(tuple(map(_as_sample, stories)), {}, {}))
        self._texts = {url_key(story.url): story for story in stories if story.url and story.article}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            target = head.split(" ")[1]
            status, kind, body = await self._found(target)
            lines = (f"HTTP/1.1 {status} x", f"Content-Type: {kind}", f"Content-Length: {len(body)}")
            writer.write("\r\n".join((*lines, "Connection: close", "", "")).encode() + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError, OSError):
            pass  # no request, or nobody who waits for the answer
        finally:
            writer.close()

    async def _found(self, target: str) -> tuple[int, str, bytes]:
        if target.startswith("/reader/"):
            return self._read(unquote(target.removeprefix("/reader/")))
        request = httpx2.Request("GET", f"http://127.0.0.1{target}")
        response = await self._hacker_news.handle_async_request(request)
        return response.status_code, response.headers["content-type"], response.content

    def _read(self, url: str) -> tuple[int, str, bytes]:
        story = self._texts.get(url_key(url))
        if story is None:
            return 404, "text/plain", b"no text is recorded for this page"
        text = f"Title: {story.title}\n\nURL Source: {url}\n\nMarkdown Content:\n{story.article}"
        return 200, "text/plain; charset=utf-8", text.encode()


def _rank(story: NewsStory, end: datetime) -> float:
    """Return a story's place on the front page at the end of its day: points divided by a power of its age."""
    hours = max(0.0, (end - story.time) / timedelta(hours=1))
    return max(0, story.points - 1) ** 0.8 / (hours + 2) ** 1.8


def _as_sample(story: NewsStory) -> SampleStory:
    return SampleStory(
        id=story.id,
        type="story",
        time=story.time,
        by=story.by,
        score=story.points,
        descendants=story.comments,
        title=story.title,
        url=story.url if urlsplit(story.url).scheme in {"http", "https"} else "",
        text=story.text,
    )
