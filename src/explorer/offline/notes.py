"""The files that rule-driven helpers write for each other: plain markdown that reads well and parses back."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from explorer.offline.phrases import PHRASES, Phrases
from explorer.offline.reading import ListedStory, harmless, stories_in, story_entry
from explorer.offline.text import CITATION_MARK
from explorer.reports.render import with_hosts_only
from explorer.text.rendering import without_marks

QUOTE_LINE = re.compile(r"^( *)- (?:\*(\S+)\*(?: \w+| 回复)?[:：] )?“(.*)” \[(S\d+)\]$")
SOURCE_LINE = re.compile(r"^\[(S\d+)\] (.+)$")
MAX_REASON_CHARS = 200
MAX_SLUG_CHARS = 48
FRESH_HOURS = 72
"""After that points an hour say nothing any more."""


@dataclass(frozen=True)
class NoteQuote:
    """Words taken verbatim from a source."""

    text: str
    source: str
    author: str = ""
    """Author of a comment."""
    is_reply: bool = False
    """Whether the quote answers the one before it."""

    def line(self, phrases: Phrases) -> str:
        """Return a line of markdown; curly marks enclose what is verbatim."""
        indent = "  " if self.is_reply else ""
        verb = f" {phrases('replies')}" if self.is_reply else ""
        who = f"*{self.author}*{verb}: " if self.author else ""
        return f"{indent}- {who}“{self.text}” [{self.source}]"


@dataclass(frozen=True)
class ResearchNote:
    """What was found about one story or one page."""

    title: str
    story: ListedStory | None = None
    about: str = ""
    """Author, date and address of a page."""
    source: str = ""
    """Id of the page's source."""
    article: tuple[NoteQuote, ...] = ()
    post: tuple[NoteQuote, ...] = ()
    discussion: tuple[NoteQuote, ...] = ()
    passages: tuple[NoteQuote, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def has_text(self) -> bool:
        """Whether there is anything to quote."""
        return bool(self.article or self.post or self.discussion or self.passages)


SECTIONS = ("article", "post", "discussion", "passages")
SECTION_BY_HEADING = {f"## {words}": key for key in (*SECTIONS, "why", "unknown") for words in PHRASES[key]}


def safe_author(name: str) -> str:
    """Return a commenter's name that cannot break the line it stands on."""
    return re.sub(r"[^\w.-]", "", name, flags=re.ASCII) or "?"


def quote(text: str, source: str, author: str = "", *, is_reply: bool = False) -> NoteQuote | None:
    """Return a quote, unless its words could be taken for a mark of ours."""
    if not text or "\n" in text or CITATION_MARK.search(text):
        return None
    return NoteQuote(text, source, safe_author(author) if author else "", is_reply)


def numbers_line(story: ListedStory, phrases: Phrases) -> str:
    """Return why a story is notable: the cited numbers, and what was computed from them."""
    line = phrases("numbers", points=story.points, comments=story.comments, cite=f"[{story.source}]")
    if story.velocity and story.age_hours <= FRESH_HOURS:
        line += phrases("speed", velocity=f"{story.velocity:.1f}", age=f"{story.age_hours:.1f}")
    return line + phrases("stop")


def write_note(note: ResearchNote, phrases: Phrases) -> str:
    """Return the text of a note's file."""
    lines = [f"# {note.title}", ""]
    if note.story is not None:
        lines += [story_entry(1, note.story), "", f"## {phrases('why')}", "", f"- {numbers_line(note.story, phrases)}"]
    elif note.source:
        lines.append(f"[{note.source}] {note.about}")
    for key in SECTIONS:
        quotes: tuple[NoteQuote, ...] = getattr(note, key)
        if quotes:
            lines += ["", f"## {phrases(key)}", "", *(one.line(phrases) for one in quotes)]
    if note.unknown:
        lines += ["", f"## {phrases('unknown')}", "", *(f"- {harmless(gap)}" for gap in note.unknown)]
    return "\n".join(lines) + "\n"


@dataclass
class _Reading:
    """A note while it is read."""

    quotes: dict[str, list[NoteQuote]] = field(default_factory=lambda: {key: [] for key in SECTIONS})
    unknown: list[str] = field(default_factory=list[str])
    section: str = ""

    def take(self, line: str) -> None:
        if line.startswith("## "):
            self.section = SECTION_BY_HEADING.get(line.strip(), "")
        elif self.section in self.quotes and (match := QUOTE_LINE.match(line)):
            quoted = NoteQuote(match[3], match[4], match[2] or "", bool(match[1]))
            self.quotes[self.section].append(quoted)
        elif self.section == "unknown" and line.startswith("- "):
            self.unknown.append(line[2:])


def read_note(text: str) -> ResearchNote | None:
    """Parse a note from its file; None when the file is not one."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("# "):
        return None
    reading = _Reading()
    for line in lines[1:]:
        reading.take(line)
    title = lines[0][2:].strip()
    # A list of stories is no note on one, even a list of one.
    stories = [story for story in stories_in(lines[:5]) if story.title == title]
    head = next((match for line in lines[1:4] if (match := SOURCE_LINE.match(line))), None)
    note = ResearchNote(
        title=title,
        story=stories[0] if stories else None,
        source=head[1] if head and not stories else "",
        about=head[2] if head and not stories else "",
        unknown=tuple(reading.unknown),
    )
    note = replace(note, **{key: tuple(quotes) for key, quotes in reading.quotes.items()})
    return note if note.story or note.has_text or note.source else None


def write_overview(title: str, stories: Sequence[ListedStory], gaps: Iterable[str], phrases: Phrases) -> str:
    """Return the list of stories as a file, in the order given."""
    lines = [f"# {title}", "", *(story_entry(number, story) for number, story in enumerate(stories, 1))]
    gaps = list(gaps)
    if gaps:
        lines += ["", f"## {phrases('unknown')}", "", *(f"- {harmless(gap)}" for gap in gaps)]
    return "\n".join(lines) + "\n"


def gaps_in(text: str) -> list[str]:
    """Return the lines of a file's section on what is not known."""
    reading = _Reading()
    for line in text.splitlines():
        reading.take(line)
    return reading.unknown


def short_reason(text: str) -> str:
    """Return the first sentence of a tool's error, with hosts in the place of addresses."""
    line = harmless(with_hosts_only(without_marks(text)))
    end = re.search(r"[.。](?:\s|$)", line)
    sentence = (line[: end.start()] if end else line).strip()
    return sentence if len(sentence) <= MAX_REASON_CHARS else f"{sentence[: MAX_REASON_CHARS - 1]}…"


def slug(text: str) -> str:
    """Return a file name's worth of a title; empty for a title without Latin letters."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    name = ""
    for word in words:
        if len(name) + len(word) >= MAX_SLUG_CHARS:
            break
        name += f"-{word}" if name else word
    return name
