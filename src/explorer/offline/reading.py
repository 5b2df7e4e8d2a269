"""What tools return, read back into values. Only well-formed lines count: text from outside stays text."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

FENCE_START = re.compile(r"^<<untrusted ([0-9a-f]{16})>>$")
LEFT_OUT = re.compile(r"^\[\d+ of \d+ characters are left out here;")
"""Behind this line a long reply goes on in the middle of something."""
STORY_HEAD = re.compile(r"^(\d+)\. \[(S\d+)\] (.+)$")
STORY_FACTS = re.compile(
    r"^ {3}id (\d+) \| ([\d,]+|\?) points? \| ([\d,]+|\?) comments? \| ([\d.,]+|\?) points/h \| ([\d.,]+|\?) h old"
    r" \| by (\S+) \| (\S+) \| (text|\?|https?://\S+)"
)
THREAD_HEAD = re.compile(r"^Comments on \[(S\d+)\] .*\(story id (\d+)\): (\d+) of (\d+|\?) shown")
COMMENT_HEAD = re.compile(r"^( *)- (\S+) \(([^()]*), id (\d+)\): ?(.*)$")
GONE_HEAD = re.compile(r"^( *)- \[[^\]]*\].*\(.*id \d+\)")
PAGE_HEAD = re.compile(r"^\[(S\d+)\] (.*)$")
PAGE_PART = re.compile(r"^characters \d+-(\d+) of (\d+)")
HARMLESS = str.maketrans("[]<>`", "()\u2039\u203a'")
HIT_URL = re.compile(r"^ {3}(https?://\S+)$")


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
        """Its article, or its own page."""
        return self.url or f"https://news.ycombinator.com/item?id={self.id}"


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
    """What stands before the first comment: the story's own words."""


@dataclass(frozen=True)
class ReadPage:
    """A page, or its first part."""

    source: str
    title: str
    about: str
    """Author, date and address, as the tool says them."""
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


class HelperReply(BaseModel):
    """What `call_agent` returns."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    agent_id: str = ""
    status: str = ""
    summary: str = ""
    files: list[dict[str, str | int]] = []
    open_questions: str = ""

    @property
    def paths(self) -> list[str]:
        """The files it wrote."""
        return [str(file["path"]) for file in self.files if str(file.get("path", "...")) != "..."]


def read_fence(text: str) -> tuple[list[str], list[str]]:
    """Lines before the fence, and the lines within it; the end is the mark of the beginning, and no other."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if match := FENCE_START.match(line):
            end_mark = f"<<end {match[1]}>>"
            end = next((index for index in range(len(lines) - 1, start, -1) if lines[index] == end_mark), len(lines))
            end = next((index for index in range(start, end) if LEFT_OUT.match(lines[index])), end)
            return lines[:start], lines[start + 1 : end]
    return lines, []


def stories_in(lines: list[str]) -> list[ListedStory]:
    """The stories of a list; an entry is two lines, and anything else is passed over."""
    found: dict[int, ListedStory] = {}
    for head_line, facts_line in pairwise(lines):
        head, facts = STORY_HEAD.match(head_line), STORY_FACTS.match(facts_line)
        if head and facts:
            story = _story(head[2], head[3], facts)
            found.setdefault(story.id, story)
    return list(found.values())


def _story(source: str, title: str, facts: "re.Match[str]") -> ListedStory:
    url = facts[8] if facts[8].startswith("http") else ""
    site = urlsplit(url).netloc.removeprefix("www.")
    bare = title.removesuffix(f" ({site})") if site else re.sub(r" \((?:text|news\.ycombinator\.com)\)$", "", title)
    return ListedStory(
        source=source,
        id=int(facts[1]),
        title=harmless(bare),
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
    """Text from outside as one line without brackets: neither a citation, nor a link, nor HTML of ours."""
    return " ".join(text.translate(HARMLESS).split())


def story_entry(number: int, story: ListedStory) -> str:
    """A story in the form of the lists, for tasks and notes."""
    site = f" ({story.site})" if story.site else ""
    return (
        f"{number}. [{story.source}] {story.title}{site}\n"
        f"   id {story.id} | {story.points} points | {story.comments} comments | {story.velocity:.1f} points/h"
        f" | {story.age_hours:.1f} h old | by {story.by} | {story.time} | {story.url or 'text'}"
    )


def thread_in(text: str) -> ReadThread | None:
    """A thread; None when the answer is not one."""
    head, body = read_fence(text)
    match = next((found for line in head if (found := THREAD_HEAD.match(line))), None)
    if match is None:
        return None
    first = next((index for index, line in enumerate(body) if _opens_comment(line)), len(body))
    total = int(match[4]) if match[4].isdigit() else int(match[3])
    words = "\n".join(line.strip() for line in body[:first]).strip()
    return ReadThread(match[1], int(match[3]), total, tuple(_remarks(body[first:])), words)


def _opens_comment(line: str) -> bool:
    return bool(COMMENT_HEAD.match(line) or GONE_HEAD.match(line))


def _remarks(lines: list[str]) -> Iterator[Remark]:
    last_at_depth: dict[int, int] = {}
    count = 0
    for author, depth, text in _blocks(lines):
        if not author:
            last_at_depth[depth] = -1
            continue
        parent = last_at_depth.get(depth - 1, -1) if depth else -1
        yield Remark(author, text, depth, parent)
        last_at_depth[depth] = count
        count += 1


def _blocks(lines: list[str]) -> Iterator[tuple[str, int, str]]:
    """Author, depth and text of each comment; no author for one that is gone."""
    author, depth, text = "", 0, list[str]()
    is_open = False
    for line in lines:
        if not _opens_comment(line):
            text.append(line.strip())
            continue
        if is_open:
            yield author, depth, "\n".join(text).strip()
        match = COMMENT_HEAD.match(line)
        is_open = True
        depth = (len(line) - len(line.lstrip())) // 2
        author, text = (match[2], [match[5]]) if match and not match[2].startswith("[") else ("", [])
    if is_open:
        yield author, depth, "\n".join(text).strip()


def page_in(text: str) -> ReadPage | None:
    """A page; None when the answer is not one."""
    head, body = read_fence(text)
    match = PAGE_HEAD.match(head[0]) if head else None
    if match is None:
        return None
    part = next((found for line in head if (found := PAGE_PART.match(line))), None)
    flags = next((line.removeprefix("flags: ") for line in head if line.startswith("flags: ")), "")
    words = "\n".join(body)
    read, complete = (int(part[1]), int(part[2])) if part else (len(words), len(words))
    about = next((line for line in head[1:] if "http" in line or "file:" in line), "")
    return ReadPage(match[1], harmless(match[2]), harmless(about), words, flags, read, complete)


def hits_in(text: str) -> list[ListedHit]:
    """The results of a web search."""
    _, body = read_fence(text)
    found: dict[str, ListedHit] = {}
    for index, line in enumerate(body[:-1]):
        head, url = STORY_HEAD.match(line), HIT_URL.match(body[index + 1])
        if head and url:
            snippet = body[index + 2].strip() if index + 2 < len(body) and body[index + 2].startswith("   ") else ""
            found.setdefault(url[1], ListedHit(head[2], harmless(head[3]), url[1], snippet))
    return list(found.values())


def reply_in(text: str) -> HelperReply:
    """A helper's answer; empty when it is not one."""
    try:
        return HelperReply.model_validate(json.loads(text))
    except (ValueError, ValidationError):
        return HelperReply()
