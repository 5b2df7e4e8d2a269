"""Stories and posts of any site: as values, as lines for a model, as sources, and as facts for programs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime

from explorer.schema.events import Source
from explorer.schema.messages import JsonObject
from explorer.schema.tool import SourceDraft
from explorer.sources.http.wire import moment
from explorer.sources.threads import number
from explorer.text.sanitize import single_line
from explorer.text.urls import site_of


@dataclass(frozen=True)
class Submission(ABC):
    """A story or a post."""

    id: int | str
    title: str
    url: str = ""
    """The address that it links to; empty for one that is its own text."""
    author: str = ""
    points: int | None = None
    comments: int | None = None
    time: int | None = None
    """When it was submitted, in Unix seconds."""
    text: str = ""
    state: str = ""
    """`deleted`, `dead` or `removed`; empty for a live one."""

    @property
    @abstractmethod
    def page(self) -> str:
        """The address of its page on its site."""

    def age_h(self, now: datetime) -> float | None:
        """Return its age in hours; None when it is not known."""
        return None if self.time is None else max(now.timestamp() - self.time, 0.0) / 3600

    def points_per_hour(self, now: datetime) -> float | None:
        """Return its points per hour, with an age of at least one hour; None when they are not known."""
        age_h = self.age_h(now)
        return None if self.points is None or age_h is None else self.points / max(age_h, 1.0)


def submission_entry(place: int, source_id: str, one: Submission, now: datetime, *more: str) -> str:
    """Return two lines for a list; `more` are further facts."""
    site = single_line(site_of(one.url))
    facts = [
        f"id {one.id}",
        f"{number(one.points)} points",
        f"{number(one.comments)} comments",
        f"{_tenths(one.points_per_hour(now))} points/h",
        f"{_tenths(one.age_h(now))} h old",
        f"by {single_line(one.author) or '?'}",
        moment(one.time) or "?",
        single_line(one.url) or "text",
        *more,
    ]
    return f"{place}. [{source_id}] {single_line(one.title)}{f' ({site})' if site else ''}\n   {' | '.join(facts)}"


def preview(text: str, most: int) -> str:
    """Return a third line with the beginning of a text; empty without any."""
    words = single_line(text)
    return f"\n   {words if len(words) <= most else f'{words[:most]} ...'}" if words else ""


def submission_draft(one: Submission, via: str, kind: str = "story", where: str = "") -> SourceDraft:
    """Return a submission as a source, with all that is known of it; `where` begins the line of facts."""
    facts = f"{where}{number(one.points)} points, {number(one.comments)} comments, by {one.author or '?'},"
    parts = [
        one.title,
        one.url,
        f"{facts} {moment(one.time) or '?'}",
        one.state,
        *([f"\n{one.text}"] if one.text else []),
    ]
    return SourceDraft(
        url=one.page,
        title=one.title,
        kind=kind,
        via=via,
        author=one.author,
        published=moment(one.time),
        text="\n".join(part for part in parts if part),
    )


def submission_facts(source: Source, one: Submission, now: datetime) -> JsonObject:
    """Return the facts of an entry for programs; null where one is not known."""
    return {
        "source": source.id,
        "id": one.id,
        "page": source.url,
        "title": single_line(one.title),
        "url": single_line(one.url),
        "points": one.points,
        "comments": one.comments,
        "points_per_hour": _rounded(one.points_per_hour(now)),
        "age_hours": _rounded(one.age_h(now)),
        "author": single_line(one.author),
        "time": moment(one.time),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _tenths(value: float | None) -> str:
    return "?" if value is None else f"{value:.1f}"
