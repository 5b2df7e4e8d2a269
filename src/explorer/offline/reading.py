"""What tools returned, as values: from the data of their results, and text from outside from within its fence."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from explorer.offline.script_state import ToolAnswer
from explorer.schema.messages import JsonObject
from explorer.text.rendering import fenced_lines

STORY_HEAD = re.compile(r"^(\d+)\. \[(S\d+)\] (.+)$")
STORY_FACTS = re.compile(
    r"^ {3}id (\d+) \| ([\d,]+|\?) points? \| ([\d,]+|\?) comments? \| ([\d.,]+|\?) points/h \| ([\d.,]+|\?) h old"
    r" \| by (\S+) \| (\S+) \| (text|\?|https?://\S+)"
)
"""Second line of a story in a task or a note; `story_entry` writes both lines."""
ADDRESS = re.compile(r"https?://\S+")
HARMLESS = str.maketrans("[]<>`", "()\u2039\u203a'")


@dataclass(frozen=True)
class ListedStory:
    """A story as a list shows it."""

    source: str
    id: int
    title: str
    url: str
    """Empty for a text-only story."""
    points: int
    comments: int
    velocity: float
    age_hours: float
    by: str
    time: str

    @property
    def site(self) -> str:
        """The host of its article."""
        return urlsplit(self.url).netloc.removeprefix("www.")

    @property
    def link(self) -> str:
        """Address of the story's article, or of its own page."""
        return self.url or f"https://news.ycombinator.com/item?id={self.id}"


class _Read(BaseModel):
    """Data of a tool's result: what is not needed is dropped."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _StoryData(_Read):
    source: str
    id: int
    title: str
    url: str = ""
    points: int | None = None
    comments: int | None = None
    points_per_hour: float | None = None
    age_hours: float | None = None
    author: str = ""
    time: str = ""


class _ListData(_Read):
    stories: list[_StoryData] = []


class _CommentData(_Read):
    level: int
    line: int
    column: int
    author: str = ""
    state: str = ""


class _TextPlace(_Read):
    line: int
    column: int
    lines: int


class _ThreadData(_Read):
    shown: int
    total: int
    comments: list[_CommentData]
    text: _TextPlace | None = None


class _PageData(_Read):
    title: str
    url: str
    author: str = ""
    published: str = ""
    flags: list[str] = []
    last: int
    total: int


class _HitData(_Read):
    source: str
    title: str
    url: str = ""
    line: int = -1
    path: str = ""
    offset: int = 0


class _HitsData(_Read):
    hits: list[_HitData] = []


class HelperReply(_Read):
    """What `call_agent` returns."""

    agent_id: str = ""
    status: str = ""
    reason: str = ""
    output_files: list[str] = Field(default_factory=list[str])
    """Paths of the files it wrote."""


@dataclass(frozen=True)
class Remark:
    """A comment that can be quoted."""

    author: str
    text: str
    depth: int
    parent: int
    """Index of the remark it answers; -1 for none."""


@dataclass(frozen=True)
class ReadThread:
    """A comment thread."""

    source: str
    shown: int
    total: int
    remarks: tuple[Remark, ...]
    text: str
    """The story's own words."""


@dataclass(frozen=True)
class ReadPage:
    """A page, or its first part."""

    source: str
    title: str
    about: str
    """Author, date and address."""
    text: str
    flags: str
    read_chars: int
    all_chars: int


@dataclass(frozen=True)
class ListedHit:
    """A search result."""

    source: str
    title: str
    url: str
    snippet: str


@dataclass(frozen=True)
class FolderHit:
    """A document that the search in the user's folder found."""

    source: str
    title: str
    path: str
    offset: int


def body_of(answer: ToolAnswer) -> list[str]:
    """Return the lines of text from outside; of a result that was cut, those before the cut."""
    lines = fenced_lines(answer.text)
    left_out = answer.data.get("left_out")
    return lines if left_out is None else lines[: left_out.get("fenced_lines", 0)]


def listed_stories(answer: ToolAnswer) -> list[ListedStory]:
    """Return the stories of a list, each once."""
    try:
        listed = _ListData.model_validate(answer.data).stories
    except ValidationError:
        return []
    found: dict[int, ListedStory] = {}
    for one in listed:
        found.setdefault(one.id, _story(one))
    return list(found.values())


def _story(one: _StoryData) -> ListedStory:
    return ListedStory(
        source=one.source,
        id=one.id,
        title=harmless(one.title),
        url=one.url if ADDRESS.fullmatch(one.url) else "",
        points=one.points or 0,
        comments=one.comments or 0,
        velocity=one.points_per_hour or 0.0,
        age_hours=one.age_hours or 0.0,
        by=one.author or "?",
        time=one.time or "?",
    )


def stories_in(lines: Sequence[str]) -> list[ListedStory]:
    """Return the stories that a task or a note lists; an entry is two lines, and anything else is passed over."""
    found: dict[int, ListedStory] = {}
    for head_line, facts_line in pairwise(lines):
        head, facts = STORY_HEAD.match(head_line), STORY_FACTS.match(facts_line)
        if head and facts:
            story = _written_story(head[2], head[3], facts)
            found.setdefault(story.id, story)
    return list(found.values())


def _written_story(source: str, title: str, facts: "re.Match[str]") -> ListedStory:
    url = facts[8] if facts[8].startswith("http") else ""
    site = urlsplit(url).netloc.removeprefix("www.")
    return ListedStory(
        source=source,
        id=int(facts[1]),
        title=harmless(title.removesuffix(f" ({site})") if site else title),
        url=url,
        points=int(_number(facts[2])),
        comments=int(_number(facts[3])),
        velocity=_number(facts[4]),
        age_hours=_number(facts[5]),
        by=facts[6],
        time=facts[7],
    )


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def harmless(text: str) -> str:
    """Return text from outside as one line without brackets: neither a citation, nor a link, nor HTML of ours."""
    return " ".join(text.translate(HARMLESS).split())


def story_entry(number: int, story: ListedStory) -> str:
    """Return a story in the form of the lists, for tasks and notes."""
    site = f" ({story.site})" if story.site else ""
    return (
        f"{number}. [{story.source}] {story.title}{site}\n"
        f"   id {story.id} | {story.points} points | {story.comments} comments | {story.velocity:.1f} points/h"
        f" | {story.age_hours:.1f} h old | by {story.by} | {story.time} | {story.url or 'text'}"
    )


def thread_read(answer: ToolAnswer) -> ReadThread | None:
    """Return a thread; None when the answer is not one."""
    try:
        data = _ThreadData.model_validate(answer.data)
    except ValidationError:
        return None
    body = body_of(answer)
    words = "" if data.text is None else _text_at(body, data.text.line, data.text.column, data.text.lines)
    remarks = tuple(_remarks(data.comments, body))
    return ReadThread(next(iter(answer.sources), ""), data.shown, data.total, remarks, words)


def _remarks(comments: Sequence[_CommentData], body: Sequence[str]) -> Iterator[Remark]:
    last_at_depth: dict[int, int] = {}
    ends = [*(one.line for one in comments[1:]), len(body)] if comments else []
    count = 0
    for one, end in zip(comments, ends, strict=True):
        if one.state or not one.author or one.line >= len(body) or end > len(body):
            last_at_depth[one.level] = -1
            continue
        parent = last_at_depth.get(one.level - 1, -1) if one.level else -1
        yield Remark(one.author, _text_at(body, one.line, one.column, end - one.line), one.level, parent)
        last_at_depth[one.level] = count
        count += 1


def _text_at(body: Sequence[str], first: int, column: int, count: int) -> str:
    lines = [line.strip() for line in body[first : first + count]]
    return "\n".join([body[first][column:].strip(), *lines[1:]]).strip() if lines else ""


def page_read(answer: ToolAnswer) -> ReadPage | None:
    """Return a page or a document; None when the answer is not one."""
    try:
        data = _PageData.model_validate(answer.data)
    except ValidationError:
        return None
    author, date = f"by {data.author}" if data.author else "", f"published {data.published}" if data.published else ""
    about = " | ".join(part for part in (author, date, data.url) if part)
    return ReadPage(
        next(iter(answer.sources), ""),
        harmless(data.title),
        harmless(about),
        "\n".join(body_of(answer)),
        ", ".join(data.flags),
        data.last,
        data.total,
    )


def listed_hits(answer: ToolAnswer) -> list[ListedHit]:
    """Return the results of a web search, each address once."""
    body, found = body_of(answer), dict[str, ListedHit]()
    for one in _hits(answer.data):
        if not ADDRESS.fullmatch(one.url):
            continue
        snippet = body[one.line].strip() if 0 <= one.line < len(body) else ""
        found.setdefault(one.url, ListedHit(one.source, harmless(one.title), one.url, snippet))
    return list(found.values())


def folder_hits(answer: ToolAnswer) -> list[FolderHit]:
    """Return the results of a search in the user's folder, each document once."""
    found: dict[str, FolderHit] = {}
    for one in _hits(answer.data):
        found.setdefault(one.path, FolderHit(one.source, harmless(one.title), one.path, one.offset))
    return list(found.values())


def _hits(data: JsonObject) -> list[_HitData]:
    try:
        return _HitsData.model_validate(data).hits
    except ValidationError:
        return []


def reply_in(data: JsonObject) -> HelperReply:
    """Return a helper's answer; empty when it is not one."""
    try:
        return HelperReply.model_validate(data)
    except ValidationError:
        return HelperReply()
