"""What tools returned, as values: from the data of their results, and text from outside from within its fence."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from explorer.offline.script_state import ToolAnswer
from explorer.schema.messages import JsonObject
from explorer.text.rendering import fenced_lines
from explorer.text.urls import site_of

STORY_HEAD = re.compile(r"^(\d+)\. \[(S\d+)\] (.+)$")
STORY_FACTS = re.compile(
    r"^ {3}id (\w+) \| (\d+) points \| (\d+) comments \| (\S+) \| (https?://\S+) \| (text|https?://\S+)$"
)
"""Second line of a story in a task or a file; `story_entry` writes both lines."""
ADDRESS = re.compile(r"https?://\S+")
HARMLESS = str.maketrans("[]<>`", "()\u2039\u203a'")


@dataclass(frozen=True)
class ListedStory:
    """A story as a list shows it."""

    source: str
    id: str
    title: str
    url: str
    """Empty for a text-only story."""
    points: int
    comments: int
    time: str
    page: str
    """The address of its own page, with its comments."""

    @property
    def site(self) -> str:
        """The host of its article."""
        return site_of(self.url)

    @property
    def link(self) -> str:
        """Address of the story's article, or of its own page."""
        return self.url or self.page

    @property
    def platform(self) -> str:
        """The name of its site, as tools take it."""
        return "reddit" if "reddit" in site_of(self.page) else "hackernews"


class _Read(BaseModel):
    """Data of a tool's result: what is not needed is dropped."""

    model_config = ConfigDict(frozen=True, extra="ignore")


Read = TypeVar("Read", bound=_Read)


class _StoryData(_Read):
    source: str
    id: int | str
    title: str
    page: str
    url: str = ""
    points: int | None = None
    comments: int | None = None
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
    not_searched: str = ""


class _PathsData(_Read):
    listed: list[str] = []
    total: int = 0


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
    """A result of a search in the web, or in the user's folder."""

    source: str
    title: str
    url: str
    snippet: str = ""
    path: str = ""
    offset: int = 0


def body_of(answer: ToolAnswer) -> list[str]:
    """Return the lines of text from outside; of a result that was cut, those before the cut."""
    lines = fenced_lines(answer.text)
    left_out = answer.data.get("left_out")
    return lines if left_out is None else lines[: left_out.get("fenced_lines", 0)]


def listed_stories(answer: ToolAnswer) -> list[ListedStory]:
    """Return the stories of a list, each once."""
    listed = _in(answer.data, _ListData)
    found: dict[str, ListedStory] = {}
    for one in listed.stories if listed else ():
        found.setdefault(one.page, _story(one))
    return list(found.values())


def _story(one: _StoryData) -> ListedStory:
    return ListedStory(
        source=one.source,
        id=str(one.id),
        title=harmless(one.title),
        url=one.url if ADDRESS.fullmatch(one.url) else "",
        points=one.points or 0,
        comments=one.comments or 0,
        time=one.time or "?",
        page=one.page,
    )


def stories_in(lines: Sequence[str]) -> list[ListedStory]:
    """Return the stories that a task or a file lists; an entry is two lines, and anything else is passed over."""
    found: dict[str, ListedStory] = {}
    for head_line, facts_line in pairwise(lines):
        head, facts = STORY_HEAD.match(head_line), STORY_FACTS.match(facts_line)
        if head and facts:
            name, points, comments, time, page, url = facts.groups()
            url = "" if url == "text" else url
            story = ListedStory(head[2], name, harmless(head[3]), url, int(points), int(comments), time, page)
            found.setdefault(story.page, story)
    return list(found.values())


def harmless(text: str) -> str:
    """Return text from outside as one line without brackets: neither a citation, nor a link, nor HTML of ours."""
    return " ".join(text.translate(HARMLESS).split())


def story_entry(number: int, story: ListedStory) -> str:
    """Return a story on two lines, for tasks and files."""
    return (
        f"{number}. [{story.source}] {story.title}\n   id {story.id} | {story.points} points"
        f" | {story.comments} comments | {story.time} | {story.page} | {story.url or 'text'}"
    )


def thread_read(answer: ToolAnswer) -> ReadThread | None:
    """Return a thread; None when the answer is not one."""
    data = _in(answer.data, _ThreadData)
    if data is None:
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
    data = _in(answer.data, _PageData)
    if data is None:
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
    """Return the results of a search in the web or in the user's folder, each address or document once."""
    body, found = body_of(answer), dict[str, ListedHit]()
    for one in (_in(answer.data, _HitsData) or _HitsData()).hits:
        if one.path or ADDRESS.fullmatch(one.url):
            snippet = body[one.line].strip() if 0 <= one.line < len(body) else ""
            hit = ListedHit(one.source, harmless(one.title), one.url, snippet, one.path, one.offset)
            found.setdefault(one.path or one.url, hit)
    return list(found.values())


def not_searched(answer: ToolAnswer) -> str:
    """Return which files of the user's folder a search left out, and why; empty when there are none."""
    return harmless((_in(answer.data, _HitsData) or _HitsData()).not_searched)


def listed_documents(answer: ToolAnswer) -> tuple[list[str], int]:
    """Return the paths of a list of the folder's documents, and how many documents there are."""
    data = _in(answer.data, _PathsData) or _PathsData()
    return data.listed, max(data.total, len(data.listed))


def reply_in(data: JsonObject) -> HelperReply:
    """Return a helper's answer; empty when it is not one."""
    return _in(data, HelperReply) or HelperReply()


def _in(data: JsonObject, model: type[Read]) -> Read | None:
    """Return the data of a result as a model; None when it is of another kind."""
    try:
        return model.model_validate(data)
    except ValidationError:
        return None
