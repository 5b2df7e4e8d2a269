"""The bundled sample day: invented stories, articles and comments, read from the files next to this one."""

import html
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from pydantic import AwareDatetime, TypeAdapter

from explorer.schema.messages import Frozen


class SampleOption(Frozen):
    """One answer of a poll."""

    id: int
    text: str
    score: int


class SampleStory(Frozen):
    """An invented submission."""

    id: int
    type: str
    """`story`, `job` or `poll`."""
    time: AwareDatetime
    by: str
    score: int
    descendants: int | None = None
    """Comments it is said to have; the bundled thread holds the best of them. None for a job."""
    title: str
    url: str = ""
    """Empty for a story that is its own text."""
    text: str = ""
    """Paragraphs parted by an empty line."""
    options: tuple[SampleOption, ...] = ()

    @property
    def seconds(self) -> int:
        """Unix time."""
        return int(self.time.timestamp())


class SampleArticle(Frozen):
    """An invented page."""

    title: str
    author: str
    site: str
    published: str
    """ISO date."""
    paragraphs: tuple[str, ...]


class SampleComment(Frozen):
    """An invented comment with its replies."""

    id: int
    time: AwareDatetime
    by: str = ""
    text: str = ""
    deleted: bool = False
    dead: bool = False
    replies: tuple["SampleComment", ...] = ()

    @property
    def seconds(self) -> int:
        """Unix time."""
        return int(self.time.timestamp())


@dataclass(frozen=True)
class SampleDay:
    """All that was invented."""

    stories: tuple[SampleStory, ...]
    """In the front page's order."""
    articles: dict[str, SampleArticle]
    """By URL."""
    threads: dict[int, tuple[SampleComment, ...]]
    """By the story's id."""

    def replies(self, story: SampleStory) -> Iterator[tuple[int, SampleComment]]:
        """Every comment of a story with its parent's id."""
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
    """Text in Hacker News' little HTML: escaped, with a bare `<p>` between paragraphs."""
    escaped = html.escape(text, quote=False).replace('"', "&quot;").replace("'", "&#x27;").replace("/", "&#x2F;")
    return escaped.replace("\n\n", "<p>").replace("\n", " ")
