"""Pages of Reddit, read as posts with their comments: as HTML it shows them to nobody without an account."""

from explorer.sources.page import WebPage
from explorer.sources.reddit.reddit import Reddit
from explorer.sources.reddit.routes import post_at
from explorer.sources.reddit.text import reddit_thread_text
from explorer.sources.threads import CommentRange, walk

PART = CommentRange(limit=100, depth=8)
REDDIT_HOSTS = ("reddit.com", "redd.it")
"""With every host below them: old, new, np, ..."""


class RedditPages:
    """A reader of the addresses of posts."""

    def __init__(self, reddit: Reddit) -> None:
        self._reddit = reddit

    async def read(self, url: str) -> WebPage | None:
        """A post with its comments; None for any other address: a list, a picture, a user.

        Raises:
            ToolError: No route to Reddit is open, each with its reason; or Reddit refuses.
        """
        name = post_at(url)
        if name is None:
            return None
        thread, routed = await self._reddit.thread(name, PART)
        written = reddit_thread_text(thread, routed, "post_id")
        is_cut = thread.next_offset is not None or any(comment.more for _, comment in walk(thread.comments))
        ways = ("More of the thread: get_comments with platform=reddit.",) if is_cut else ()
        return WebPage(
            url=written.draft.url,
            title=thread.post.title,
            text=written.draft.text,
            via=routed.via,
            author=written.draft.author,
            published=written.draft.published,
            flags=("truncated",) if is_cut else (),
            kind="comments",
            notes=(f"Through {routed.label}.", *written.notes, *ways),
        )
