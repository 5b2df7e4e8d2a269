"""Compares the stories that two runs listed: which are new, gone, moved or more discussed.

A story is the same when its page on its site is the same, or else the article that it links to.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from pydantic import ConfigDict, ValidationError

from explorer.journal.run_state import LookupRecord
from explorer.schema.events import Source
from explorer.schema.messages import Frozen, JsonObject
from explorer.text.sanitize import single_line
from explorer.text.urls import page_key, url_key

T = TypeVar("T")
MAX_TITLE_CHARS = 200
MAX_SHOWN = 40
"""The number of entries that a page shows of each list; the JSON output has all."""
NOT_THE_LIST = frozenset({"limit"})
"""Arguments that do not change which list is read."""
SEARCHES = ("query",)
"""Arguments of a search. The places of its results depend on its words and say nothing about a story."""


class StoryChange(StrEnum):
    """How a story of two runs differs."""

    NEW = "new"
    GONE = "gone"
    MOVED = "moved"
    MORE_COMMENTS = "more comments"
    SAME = "same"


class RankedStory(Frozen):
    """A story as a list of a run had it."""

    source: str
    """The id of its source in the run."""
    title: str
    url: str
    """The address of its page on its site."""
    article: str
    """The address that it links to; empty for a text."""
    place: int | None
    """The place in the list from 1; None in the results of a search."""
    points: int | None
    comments: int | None
    listing: str
    """The list: the tool and its arguments."""


class StoryDifference(Frozen):
    """A story of one run or of both."""

    change: StoryChange
    before: RankedStory | None
    after: RankedStory | None


class _Listed(Frozen):
    model_config = ConfigDict(frozen=True, extra="ignore")

    source: str
    title: str
    url: str = ""
    points: int | None = None
    comments: int | None = None


def listed_stories(lookups: Iterable[LookupRecord], sources: Mapping[str, Source]) -> list[RankedStory]:
    """Return the stories of a run's lists, then those of its searches, each once."""
    records = sorted(lookups, key=lambda record: _is_search(record.asked))
    found: dict[str, RankedStory] = {}
    for record in records:
        shown = {name: value for name, value in record.asked.items() if name not in NOT_THE_LIST}
        listing = f"{record.tool} {shown}"
        for place, one in enumerate(_stories(record.stories), 1):
            if one.source in sources:
                story = RankedStory(
                    source=one.source,
                    title=single_line(one.title, MAX_TITLE_CHARS),
                    url=sources[one.source].url,
                    article=one.url,
                    place=None if _is_search(record.asked) else place,
                    points=one.points,
                    comments=one.comments,
                    listing=listing,
                )
                found.setdefault(url_key(story.url), story)
    return list(found.values())


def _is_search(asked: JsonObject) -> bool:
    return any(asked.get(name) for name in SEARCHES)


def _stories(facts: Sequence[JsonObject]) -> Iterator[_Listed]:
    for one in facts:
        try:
            yield _Listed.model_validate(one)
        except ValidationError:
            continue


def compared_stories(before: Sequence[RankedStory], after: Sequence[RankedStory]) -> tuple[StoryDifference, ...]:
    """Return every story of two runs with its difference: those of the second run in its order, then those gone."""
    by_page = {url_key(one.url): one for one in before}
    pairs = {one.url: by_page.pop(url_key(one.url), None) for one in after}
    by_article = {page_key(one.article): one for one in by_page.values() if one.article}
    for one in after:
        if pairs[one.url] is None and one.article:
            pairs[one.url] = by_article.pop(page_key(one.article), None)
    paired = {one.url for one in pairs.values() if one is not None}
    kept = [StoryDifference(change=_change(pairs[one.url], one), before=pairs[one.url], after=one) for one in after]
    gone = [one for one in before if one.url not in paired]
    return (*kept, *(StoryDifference(change=StoryChange.GONE, before=one, after=None) for one in gone))


def _change(before: RankedStory | None, after: RankedStory) -> StoryChange:
    if before is None:
        return StoryChange.NEW
    is_same_list = before.listing == after.listing and before.place is not None
    if is_same_list and before.place != after.place:
        return StoryChange.MOVED
    has_more = before.comments is not None and after.comments is not None and after.comments > before.comments
    return StoryChange.MORE_COMMENTS if has_more else StoryChange.SAME


def one_sided_addresses(found: Iterable[StoryDifference]) -> set[str]:
    """Return the pages and articles of stories that only one run has, in the form in which addresses are compared."""
    alone = [one.after or one.before for one in found if one.before is None or one.after is None]
    return {url_key(address) for one in alone if one is not None for address in (one.url, one.article) if address}


def count_words(found: Sequence[StoryDifference]) -> str:
    """Return how many stories there are of each kind, in words."""
    counts = {change: sum(one.change is change for one in found) for change in StoryChange}
    words = {StoryChange.MORE_COMMENTS: "with more comments", StoryChange.SAME: "the same"}
    return ", ".join(f"{count} {words.get(change, change)}" for change, count in counts.items())


def story_lines(found: Sequence[StoryDifference], most: int = MAX_SHOWN) -> Iterator[str]:
    """Yield a list for each kind of difference, without what is the same; `most` limits each list."""
    for change in StoryChange:
        if change is not StoryChange.SAME:
            stories = [one for one in found if one.change is change]
            yield from listed(str(change).capitalize(), stories, lambda one: [_entry(one)], most)


def listed(name: str, found: Sequence[T], show: Callable[[T], Iterable[str]], most: int = MAX_SHOWN) -> Iterator[str]:
    """Yield the lines of a list with its name, and how many entries of it are left out; nothing for an empty one."""
    if not found:
        return
    yield from ("", f"{name}:", "")
    for one in found[:most]:
        yield from show(one)
    if len(found) > most:
        yield f"- ... and {len(found) - most} more"


def _entry(one: StoryDifference) -> str:
    story = one.after or one.before
    assert story is not None
    known = one.before if one.after is not None else None
    facts = [
        _figure("place", known and known.place, story.place),
        _figure("points", known and known.points, story.points),
        _figure("comments", known and known.comments, story.comments),
    ]
    return f"- {story.title}, {story.url}: {', '.join(fact for fact in facts if fact) or 'no figures'} `{story.source}`"


def _figure(name: str, before: int | None, after: int | None) -> str:
    if after is None:
        return ""
    return f"{name} {after}" if before is None or before == after else f"{name} {before} → {after}"
