"""Item pages of Hacker News, read through its APIs: the thread's text instead of a table of a table."""

from urllib.parse import parse_qs, urlsplit

from explorer.sources.hackernews.hackernews import HackerNews
from explorer.sources.hackernews.thread_text import hn_thread_text
from explorer.sources.page import WebPage
from explorer.sources.threads import CommentRange

HOST = "news.ycombinator.com"
SHOWN = CommentRange(limit=100, depth=8)
ARGUMENT = "post_id"
"""What `get_comments` calls a thread's or a comment's id."""


class HackerNewsPages:
    """Reads `news.ycombinator.com/item?id=...`, a story's thread or what stands under one comment."""

    def __init__(self, client: HackerNews) -> None:
        self._client = client

    async def read(self, url: str) -> WebPage | None:
        """The thread; None for the site's other pages.

        Raises:
            ToolError: There is no such item, or no service answers.
        """
        parts = urlsplit(url)
        item = "".join(parse_qs(parts.query).get("id", [])[:1])
        if parts.path != "/item" or not (item.isascii() and item.isdecimal()):
            return None
        written = hn_thread_text(await self._client.thread(int(item), SHOWN), ARGUMENT)
        draft = written.draft
        more = tuple(f"Not all is shown, see get_comments with platform=hackernews. {note}" for note in written.notes)
        return WebPage(
            url=draft.url,
            title=draft.title,
            text=draft.text,
            via=draft.via,
            author=draft.author,
            published=draft.published,
            kind=draft.kind,
            notes=more,
        )
