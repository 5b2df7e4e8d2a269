"""Stories and threads of Hacker News as text for a model, and as the sources they are stored as."""

from datetime import datetime

from explorer.schema.tool import SourceDraft
from explorer.sources.hackernews.items import ITEM_URL, SearchHit, Story
from explorer.sources.hackernews.services import Thread
from explorer.sources.http.wire import moment
from explorer.sources.submissions import preview, submission_draft, submission_entry
from explorer.sources.threads import LeadLine, ThreadText, hanging, shown_of, thread_body, ways_on
from explorer.text.rendering import MAX_ID_CHARS, code, own
from explorer.text.sanitize import single_line

VIA = "hackernews"
COMMENT_PREVIEW_CHARS = 500


def hn_entry(place: int, source_id: str, hit: SearchHit, now: datetime) -> str:
    """Return two lines for a story; for a comment, a third line with its text."""
    return submission_entry(place, source_id, hit.story, now) + preview(hit.comment, COMMENT_PREVIEW_CHARS)


def hn_draft(story: Story) -> SourceDraft:
    """Return a story as a source, with all that is known of it."""
    return submission_draft(story, VIA, "comment" if story.kind == "comment" else "story")


def hn_thread_text(thread: Thread, argument: str) -> ThreadText:
    """Return a thread as text; `argument` is the name of the argument for its id in the tool that shows it."""
    story = thread.story
    lead = () if thread.root else tuple(_story_lines(story))
    under = own(" under comment {id}", id=code(thread.root, MAX_ID_CHARS)) if thread.root else own("")
    below = thread.comments[0].replies if thread.root else thread.comments
    draft = SourceDraft(
        url=ITEM_URL.format(thread.root) if thread.root else story.page,
        title=story.title,
        kind="comments",
        via=VIA,
        author=thread.comments[0].author if thread.root else story.author,
        published=moment(thread.comments[0].time if thread.root else story.time),
        text=f"{story.title}\n{story.url or story.page}\n\n{thread_body(lead, thread.comments)}",
    )
    return ThreadText(
        draft=draft,
        head=own(
            '"{title}" (story id {id}): {shown}{under}.',
            title=story.title,
            id=story.id,
            shown=shown_of(thread.shown, thread.total),
            under=under,
        ),
        notes=ways_on(
            below, thread.next_offset, lambda one: own("{name}={id}", name=code(argument), id=code(one, MAX_ID_CHARS))
        ),
        lead=lead,
        comments=tuple(thread.comments),
        shown=thread.shown,
        total=thread.total,
    )


def _story_lines(story: Story) -> list[LeadLine]:
    """Return the lines of the story's own text and a poll's options, before the comments on them."""
    lines: list[LeadLine] = []
    if story.state:
        lines.append(LeadLine(f"The story is {story.state}."))
    if story.text:
        lines.append(LeadLine(hanging(story.text, "  "), "Text of the story: ", is_of_author=True))
    if story.options:
        lines.append(LeadLine("; ".join(single_line(option) for option in story.options), "Options of the poll: "))
    return lines
