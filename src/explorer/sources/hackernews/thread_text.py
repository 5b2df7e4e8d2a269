"""A thread of Hacker News as text."""

from explorer.schema.tool_context import SourceDraft
from explorer.sources.hackernews.items import ITEM_URL, Story
from explorer.sources.hackernews.threads import Thread
from explorer.sources.threads import ThreadText, comment_lines, hanging, shown_of, ways_on
from explorer.sources.timestamps import moment
from explorer.text.sanitize import single_line

VIA = "hackernews"


def hn_thread_text(thread: Thread, argument: str) -> ThreadText:
    """A thread, written down; `argument` is what its id is called by the tool that shows it."""
    story = thread.story
    body = "\n".join([*([] if thread.root else _story_lines(story)), *comment_lines(thread.comments)])
    under = f" under comment {thread.root}" if thread.root else ""
    below = thread.comments[0].replies if thread.root else thread.comments
    draft = SourceDraft(
        url=ITEM_URL.format(thread.root) if thread.root else story.item_url,
        title=story.title,
        kind="comments",
        via=VIA,
        author=thread.comments[0].author if thread.root else story.author,
        published=moment(thread.comments[0].time if thread.root else story.time),
        text=f"{story.title}\n{story.url or story.item_url}\n\n{body}",
    )
    return ThreadText(
        draft=draft,
        head=f'"{single_line(story.title)}" (story id {story.id}): {shown_of(thread.shown, thread.total)}{under}.',
        notes=ways_on(below, thread.next_offset, lambda one: f"{argument}={one}"),
        body=body,
    )


def _story_lines(story: Story) -> list[str]:
    """The story's own text and a poll's options, before the comments that answer them."""
    lines: list[str] = []
    if story.state:
        lines.append(f"The story is {story.state}.")
    if story.text:
        lines.append("Text of the story: " + hanging(story.text, "  "))
    if story.options:
        lines.append("Options of the poll: " + "; ".join(single_line(option) for option in story.options))
    return lines
