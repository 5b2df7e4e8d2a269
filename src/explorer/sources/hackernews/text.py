"""Stories and threads of Hacker News as text for a model, and as the sources they are stored as."""

from datetime import datetime
from typing import Protocol
from urllib.parse import urlsplit

from explorer.schema.events import Source
from explorer.schema.messages import JsonObject
from explorer.schema.tool import SourceDraft
from explorer.sources.hackernews.items import ITEM_URL, SearchHit, Story
from explorer.sources.hackernews.services import Thread
from explorer.sources.http.wire import moment
from explorer.sources.threads import LeadLine, ThreadText, hanging, number, shown_of, thread_body, ways_on
from explorer.text.rendering import MAX_ID_CHARS, code, own
from explorer.text.sanitize import single_line

VIA = "hackernews"
COMMENT_PREVIEW_CHARS = 500


def hn_entry(place: int, source_id: str, hit: SearchHit, now: datetime) -> str:
    """Return two lines for a story; for a comment, a third line with its text."""
    story = hit.story
    site = _site(story.url)
    title = f"{place}. [{source_id}] {single_line(story.title)}" + (f" ({site})" if site else "")
    age_h = _age_h(story, now)
    facts = [
        f"id {story.id}",
        f"{number(story.points)} points",
        f"{number(story.comments)} comments",
        f"{velocity(story.points, age_h)} points/h",
        f"{'?' if age_h is None else f'{age_h:.1f}'} h old",
        f"by {single_line(story.author) or '?'}",
        moment(story.time) or "?",
        single_line(story.url) or "text",
    ]
    lines = [title, "   " + " | ".join(facts)]
    if hit.comment:
        text = single_line(hit.comment)
        lines.append("   " + (text if len(text) <= COMMENT_PREVIEW_CHARS else text[:COMMENT_PREVIEW_CHARS] + " ..."))
    return "\n".join(lines)


class Submission(Protocol):
    """A story or a post, of whatever site."""

    @property
    def id(self) -> int | str:
        """Its number or name on its site."""
        ...

    @property
    def title(self) -> str:
        """Its title."""
        ...

    @property
    def url(self) -> str:
        """The address that it links to."""
        ...

    @property
    def author(self) -> str:
        """Who submitted it."""
        ...

    @property
    def points(self) -> int | None:
        """Its points."""
        ...

    @property
    def comments(self) -> int | None:
        """The number of its comments."""
        ...

    @property
    def time(self) -> int | None:
        """When it was submitted, in Unix seconds."""
        ...


def story_facts(source: Source, story: Submission, now: datetime) -> JsonObject:
    """Return the facts of an entry for programs; null where one is not known."""
    age_h = _age_h(story, now)
    speed = None if story.points is None or age_h is None else story.points / max(age_h, 1.0)
    return {
        "source": source.id,
        "id": story.id,
        "page": source.url,
        "title": single_line(story.title),
        "url": single_line(story.url),
        "points": story.points,
        "comments": story.comments,
        "points_per_hour": None if speed is None else round(speed, 1),
        "age_hours": None if age_h is None else round(age_h, 1),
        "author": single_line(story.author),
        "time": moment(story.time),
    }


def _age_h(story: Submission, now: datetime) -> float | None:
    return None if story.time is None else max(now.timestamp() - story.time, 0.0) / 3600


def velocity(points: int | None, age_h: float | None) -> str:
    """Return points per hour, with an age of at least one hour; `?` if points or age are not known."""
    return "?" if points is None or age_h is None else f"{points / max(age_h, 1.0):.1f}"


def hn_draft(story: Story) -> SourceDraft:
    """Return a story as a source, with all that is known of it."""
    facts = (
        f"{number(story.points)} points, {number(story.comments)} comments, by {story.author or '?'},"
        f" {moment(story.time) or '?'}"
    )
    parts = [story.title, story.url, facts, *([f"\n{story.text}"] if story.text else [])]
    return SourceDraft(
        url=story.item_url,
        title=story.title,
        kind=story.kind if story.kind == "comment" else "story",
        via=VIA,
        author=story.author,
        published=moment(story.time),
        text="\n".join(part for part in parts if part),
    )


def _site(url: str) -> str:
    try:
        return single_line(urlsplit(url).netloc.removeprefix("www."))
    except ValueError:  # what a story gives as its address is shown, even if it is none
        return ""


def hn_thread_text(thread: Thread, argument: str) -> ThreadText:
    """Return a thread as text; `argument` is the name of the argument for its id in the tool that shows it."""
    story = thread.story
    lead = () if thread.root else tuple(_story_lines(story))
    under = own(" under comment {id}", id=code(thread.root, MAX_ID_CHARS)) if thread.root else own("")
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
