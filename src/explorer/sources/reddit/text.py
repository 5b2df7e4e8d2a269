"""Posts and threads of Reddit as text: for a model to read, and as the sources they are stored as."""

from datetime import datetime
from urllib.parse import urlsplit

from explorer.schema.tool import SourceDraft
from explorer.sources.hackernews.list_text import velocity
from explorer.sources.reddit.items import Post
from explorer.sources.reddit.routes import RedditThread, Routed
from explorer.sources.threads import LeadLine, ThreadText, hanging, number, shown_of, thread_body, walk, ways_on
from explorer.sources.timestamps import moment
from explorer.text.sanitize import single_line

PREVIEW_CHARS = 300


def reddit_entry(place: int, source_id: str, post: Post, now: datetime) -> str:
    """Two lines for a post; a third with the beginning of its text."""
    site = _site(post.url)
    title = f"{place}. [{source_id}] {single_line(post.title)}" + (f" ({site})" if site else "")
    age_h = None if post.time is None else max(now.timestamp() - post.time, 0.0) / 3600
    facts = [
        f"id {post.id}",
        f"{number(post.points)} points",
        f"{number(post.comments)} comments",
        f"{velocity(post.points, age_h)} points/h",
        f"{'?' if age_h is None else f'{age_h:.1f}'} h old",
        f"by {single_line(post.author) or '?'}",
        moment(post.time) or "?",
        single_line(post.url) or "text",
        f"r/{single_line(post.subreddit) or '?'}",
        *post.marks,
        *([post.state] if post.state else []),
    ]
    lines = [title, "   " + " | ".join(facts)]
    if words := single_line(post.text):
        lines.append("   " + (words if len(words) <= PREVIEW_CHARS else words[:PREVIEW_CHARS] + " ..."))
    return "\n".join(lines)


def reddit_draft(post: Post, routed: Routed) -> SourceDraft:
    """All that is known of a post, as a source."""
    facts = (
        f"r/{post.subreddit}, {number(post.points)} points, {number(post.comments)} comments, by {post.author or '?'},"
        f" {moment(post.time) or '?'}"
    )
    parts = [post.title, post.url, facts, post.state, *([f"\n{post.text}"] if post.text else [])]
    return SourceDraft(
        url=post.page,
        title=post.title,
        kind="story",
        via=routed.via,
        author=post.author,
        published=moment(post.time),
        text="\n".join(part for part in parts if part),
    )


def reddit_thread_text(thread: RedditThread, routed: Routed, argument: str) -> ThreadText:
    """A thread, written down; `argument` is what its id is called by the tool that shows it."""
    post = thread.post
    lead = () if thread.root else tuple(_post_lines(post))
    shown = sum(1 for _ in walk(thread.comments)) - bool(thread.root)
    below = thread.comments[0].replies if thread.root else thread.comments
    under = f" under comment {thread.root}" if thread.root else ""
    top = thread.comments[0] if thread.root else post
    draft = SourceDraft(
        url=f"{post.page.rstrip('/')}/{thread.root}/" if thread.root and post.path else post.page,
        title=post.title,
        kind="comments",
        via=routed.via,
        author=top.author,
        published=moment(top.time),
        text=f"{post.title}\n{post.url or post.page}\n\n{thread_body(lead, thread.comments)}",
    )
    return ThreadText(
        draft=draft,
        head=(
            f'"{single_line(post.title)}" (Reddit post {post.id}, r/{single_line(post.subreddit) or "?"}) through '
            f"{routed.label}: {shown_of(shown, max(thread.total, shown))}{under}."
        ),
        notes=(*routed.notes, *ways_on(below, thread.next_offset, lambda one: f"{argument}={post.id}/{one}")),
        lead=lead,
        comments=tuple(thread.comments),
        shown=shown,
        total=max(thread.total, shown),
    )


def _post_lines(post: Post) -> list[LeadLine]:
    """The post's own words and numbers, before the comments."""
    facts = f"{number(post.points)} points, by {single_line(post.author) or '?'}, {moment(post.time) or '?'}"
    lines = [LeadLine(facts)]
    if post.state:
        lines.append(LeadLine(f"The post is {post.state}."))
    if post.url:
        lines.append(LeadLine(f"Links to {single_line(post.url)}"))
    if post.text:
        lines.append(LeadLine(hanging(post.text, "  "), "Text of the post: ", is_of_author=True))
    return lines


def _site(url: str) -> str:
    try:
        return single_line(urlsplit(url).netloc.removeprefix("www."))
    except ValueError:
        return ""
