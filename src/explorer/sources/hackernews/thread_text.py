"""A thread of Hacker News as text."""

from explorer.schema.tool import SourceDraft
from explorer.sources.hackernews.items import ITEM_URL, Story
from explorer.sources.hackernews.threads import Thread
from explorer.sources.threads import LeadLine, ThreadText, hanging, shown_of, thread_body, ways_on
from explorer.sources.timestamps import moment
from explorer.text.sanitize import single_line

VIA = "hackernews"


def hn_thread_text(thread: Thread, argument: str) -> ThreadText:
    """A thread, written down; `argument` is what its id is called by the tool that shows it."""
    story = thread.story
    lead = () if thread.root else tuple(_story_lines(story))
    under = f" under comment {thread.root}" if thread.root else ""
    below = thread.comments[0].replies if thread.root else thread.comments
    draft = SourceDraft(
        url=ITEM_URL.format(thread.root) if thread.root else story.item_url,
        title=story.title,
        kind="comments",
        via=VIA,
        author=thread.comments[0].author if thread.root else story.author,
        published=moment(thread.comments[0].time if thread.root else story.time),
        text=f"{story.title}\n{story.url or story.item_url}\n\n{thread_body(lead, thread.comments)}",
    )
    return ThreadText(
        draft=draft,
        head=f'"{single_line(story.title)}" (story id {story.id}): {shown_of(thread.shown, thread.total)}{under}.',
        notes=ways_on(below, thread.next_offset, lambda one: f"{argument}={one}"),
        lead=lead,
        comments=tuple(thread.comments),
        shown=thread.shown,
        total=thread.total,
    )


def _story_lines(story: Story) -> list[LeadLine]:
    """The story's own text and a poll's options, before the comments that answer them."""
    lines: list[LeadLine] = []
    if story.state:
        lines.append(LeadLine(f"The story is {story.state}."))
    if story.text:
        lines.append(LeadLine(hanging(story.text, "  "), "Text of the story: ", is_of_author=True))
    if story.options:
        lines.append(LeadLine("; ".join(single_line(option) for option in story.options), "Options of the poll: "))
    return lines
