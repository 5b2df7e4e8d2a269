"""The sample day: invented stories, articles and comments, and the search of Hacker News over them."""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from operator import eq, ge, gt, le, lt

from pydantic import AwareDatetime, TypeAdapter

from explorer.schema.messages import Frozen, JsonObject


class SampleOption(Frozen):
    """One answer of a poll."""

    id: int
    text: str
    score: int


class _Dated(Frozen):
    id: int
    time: AwareDatetime

    @property
    def seconds(self) -> int:
        """Unix time."""
        return int(self.time.timestamp())


class SampleStory(_Dated):
    """An invented submission."""

    type: str
    """`story`, `job` or `poll`."""
    by: str
    score: int
    descendants: int | None = None
    """Comments it is said to have; the bundled thread holds the best of them. None for a job."""
    title: str
    url: str = ""
    """Empty for a story that is its own text."""
    text: str = ""
    """Paragraphs separated by an empty line."""
    options: tuple[SampleOption, ...] = ()


class SampleArticle(Frozen):
    """An invented page."""

    title: str
    author: str
    site: str
    published: str
    """ISO date."""
    paragraphs: tuple[str, ...]


class SampleComment(_Dated):
    """An invented comment with its replies."""

    by: str = ""
    text: str = ""
    deleted: bool = False
    dead: bool = False
    replies: tuple["SampleComment", ...] = ()


@dataclass(frozen=True)
class SampleDay:
    """All that was invented."""

    stories: tuple[SampleStory, ...]
    """Stories in the order of the front page."""
    articles: dict[str, SampleArticle]
    """Articles by URL."""
    threads: dict[int, tuple[SampleComment, ...]]
    """Comments by the story's id."""

    def replies(self, story: SampleStory) -> Iterator[tuple[int, SampleComment]]:
        """Yield every comment of a story with its parent's id."""
        yield from _with_parents(story.id, self.threads.get(story.id, ()))


def _with_parents(parent: int, comments: tuple[SampleComment, ...]) -> Iterator[tuple[int, SampleComment]]:
    for comment in comments:
        yield parent, comment
        yield from _with_parents(comment.id, comment.replies)


def load_sample_day() -> SampleDay:
    """Read the bundled files."""
    folder = files("explorer") / "offline" / "sample_day"

    def content(name: str) -> bytes:
        return (folder / name).read_bytes()

    return SampleDay(
        stories=TypeAdapter(tuple[SampleStory, ...]).validate_json(content("stories.json")),
        articles=TypeAdapter(dict[str, SampleArticle]).validate_json(content("articles.json")),
        threads=TypeAdapter(dict[int, tuple[SampleComment, ...]]).validate_json(content("comments.json")),
    )


def as_hn_html(text: str) -> str:
    """Return text in Hacker News' little HTML: escaped, with a bare `<p>` between paragraphs."""
    escaped = html.escape(text, quote=False).replace('"', "&quot;").replace("'", "&#x27;").replace("/", "&#x2F;")
    return escaped.replace("\n\n", "<p>").replace("\n", " ")


WORD = re.compile(r"\w+")
TAG_GROUP = re.compile(r"\([^)]*\)|[^,]+")
NUMERIC_FILTER = re.compile(r"(created_at_i|points|num_comments)(<=|>=|=|<|>)(-?\d+)")
COMPARE = {"<": lt, "<=": le, "=": eq, ">=": ge, ">": gt}
MAX_HITS = 1000
PREFIX_TAGS = {"Ask HN": "ask_hn", "Tell HN": "ask_hn", "Show HN": "show_hn"}


@dataclass(frozen=True)
class Indexed:
    """One searchable record: the hit, its words, and its tags."""

    hit: JsonObject
    words: frozenset[str]
    tags: frozenset[str]

    def has(self, words: list[str]) -> bool:
        """Return whether each word is the beginning of a word of the record, as the service does it."""
        return all(any(own.startswith(word) for own in self.words) for word in words)

    def is_tagged(self, expression: str) -> bool:
        """Return whether the record fits `tags`: a comma is AND, brackets are OR."""
        groups = [group.strip().strip("()") for group in TAG_GROUP.findall(expression)]
        return all(any(tag.strip() in self.tags for tag in group.split(",")) for group in groups if group)

    def passes(self, filters: str) -> bool:
        """Return whether the record fits `numericFilters`.

        Raises:
            ValueError: A filter is not understood.
        """
        for condition in (part.strip() for part in filters.split(",") if part.strip()):
            match = NUMERIC_FILTER.fullmatch(condition)
            if match is None:
                raise ValueError(condition)
            value = self.hit.get(match[1])
            if value is None or not COMPARE[match[2]](value, int(match[3])):
                return False
        return True


def indexed(day: SampleDay) -> list[Indexed]:
    """Return every story and every live comment."""
    records: list[Indexed] = []
    for story in day.stories:
        records.append(_story(story, [comment.id for comment in day.threads.get(story.id, ())]))
        records += [
            _comment(story, parent, comment)
            for parent, comment in day.replies(story)
            if not comment.deleted and not comment.dead
        ]
    return records


def search(records: list[Indexed], query: Mapping[str, str], *, is_by_date: bool) -> JsonObject:
    """Return the body of `/search` or `/search_by_date`.

    Raises:
        ValueError: A parameter is not understood.
    """
    words = WORD.findall(query.get("query", "").lower())
    page, size = int(query.get("page", "0")), min(int(query.get("hitsPerPage", "20")), MAX_HITS)
    tags, filters = query.get("tags", ""), query.get("numericFilters", "")
    found = [one.hit for one in records if one.has(words) and one.is_tagged(tags) and one.passes(filters)]
    found.sort(key=_newest_first if is_by_date else _most_relevant_first)
    return {
        "hits": found[page * size : (page + 1) * size],
        "page": page,
        "nbHits": len(found),
        "nbPages": -(-len(found) // size) if size else 0,
        "hitsPerPage": size,
        "exhaustiveNbHits": True,
        "query": query.get("query", ""),
        "processingTimeMS": 1,
    }


def tree(day: SampleDay, story: SampleStory) -> JsonObject:
    """Return the body of `/items/<id>`: a story with its whole thread, children ascending by id."""
    return _node(story.id, "story" if story.type == "job" else story.type, story.time) | {
        "author": story.by,
        "title": story.title,
        "url": story.url or None,
        "text": as_hn_html(story.text) or None,
        "points": story.score,
        "parent_id": None,
        "story_id": story.id,
        "children": _children(story.id, story.id, day.threads.get(story.id, ())),
        "options": [
            _node(option.id, "pollopt", story.time) | {"text": as_hn_html(option.text), "points": option.score}
            for option in story.options
        ],
    }


def _children(story_id: int, parent: int, comments: tuple[SampleComment, ...]) -> list[JsonObject]:
    return [
        _node(comment.id, "comment", comment.time)
        | {
            "author": None if comment.deleted else comment.by,
            "text": None if comment.deleted else as_hn_html(comment.text),
            "points": None,
            "parent_id": parent,
            "story_id": story_id,
            "children": _children(story_id, comment.id, comment.replies),
        }
        for comment in sorted(comments, key=lambda comment: comment.id)
    ]


def _node(item_id: int, kind: str, time: datetime) -> JsonObject:
    return {
        "id": item_id,
        "type": kind,
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "created_at_i": int(time.timestamp()),
        "title": None,
        "url": None,
        "children": [],
        "options": [],
    }


def _story(story: SampleStory, kids: list[int]) -> Indexed:
    tags = {story.type, "story", f"author_{story.by}", f"story_{story.id}", "front_page"}
    tags |= {tag for prefix, tag in PREFIX_TAGS.items() if story.title.startswith(prefix)}
    hit = _hit(story.id, story.by, story.time, tags) | {
        "title": story.title,
        "points": story.score,
        "num_comments": story.descendants or 0,
        "story_id": story.id,
    }
    optional: JsonObject = {"url": story.url, "story_text": as_hn_html(story.text), "children": kids}
    return _indexed(hit | {name: value for name, value in optional.items() if value}, tags)


def _comment(story: SampleStory, parent: int, comment: SampleComment) -> Indexed:
    tags = {"comment", f"author_{comment.by}", f"story_{story.id}"}
    hit = _hit(comment.id, comment.by, comment.time, tags) | {
        "comment_text": as_hn_html(comment.text),
        "parent_id": parent,
        "story_id": story.id,
        "story_title": story.title,
        "points": None,
    }
    return _indexed(hit | ({"story_url": story.url} if story.url else {}), tags)


def _hit(item_id: int, author: str, time: datetime, tags: set[str]) -> JsonObject:
    return {
        "objectID": str(item_id),
        "author": author,
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "created_at_i": int(time.timestamp()),
        "_tags": sorted(tags),
    }


def _indexed(hit: JsonObject, tags: set[str]) -> Indexed:
    fields = ("title", "url", "author", "story_text", "comment_text", "story_title")
    text = " ".join(str(hit.get(field, "")) for field in fields)
    return Indexed(hit, frozenset(WORD.findall(text.lower())), frozenset(tags))


def _newest_first(hit: JsonObject) -> tuple[int, int]:
    return (-int(hit["created_at_i"]), -int(hit["objectID"]))


def _most_relevant_first(hit: JsonObject) -> tuple[int, int]:
    return (-(hit.get("points") or 0), -(hit.get("num_comments") or 0))
