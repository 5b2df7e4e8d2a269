"""The files that rule-driven helpers write: sections of the report, each about a story or a document."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from explorer.offline.phrases import PHRASES, Phrases
from explorer.offline.reading import ListedStory, harmless
from explorer.offline.text import CITATION_MARK
from explorer.text.rendering import without_marks
from explorer.text.urls import with_hosts_only

QUOTE_LINE = re.compile(r"^ *- (?:\*\S+\*(?: \w+| 回复)?[:：] )?“(.*)” \[(S\d+)\]$", re.MULTILINE)
HEADINGS_UNKNOWN = frozenset(f"## {table['unknown']}" for table in PHRASES.values())
MAX_REASON_CHARS = 160
MAX_SLUG_CHARS = 48


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


def quote(text: str, source: str, author: str = "", *, is_reply: bool = False) -> NoteQuote | None:
    """Return a quote, unless its words could be taken for a mark of ours."""
    if not text or "\n" in text or CITATION_MARK.search(text):
        return None
    name = re.sub(r"[^\w.-]", "", author, flags=re.ASCII) or "?"
    return NoteQuote(text, source, name if author else "", is_reply)


def quotes_in(section: str) -> list[NoteQuote]:
    """Return the quotes of a section, without their authors."""
    return [NoteQuote(text, source) for text, source in QUOTE_LINE.findall(section)]


def heading_of(section: str) -> str:
    """Return the first line of a section without its mark."""
    return section.partition("\n")[0].removeprefix("# ")


def title_of(section: str) -> str:
    """Return the first line of a section without its mark and its address."""
    return re.sub(r"^\[(.*)\]\(<.*>\)$", r"\1", heading_of(section))


def story_heading(story: ListedStory) -> str:
    """Return the title of a story with its address."""
    return f"[{story.title}](<{story.link}>)"


def figures(story: ListedStory, phrases: Phrases) -> str:
    """Return the cited figures of a story."""
    # A figure in a name would be looked up in the source like any other.
    site = f"{story.site}, " if story.site and not re.search(r"\d", story.site) else ""
    values = {"points": story.points, "comments": story.comments, "day": story.time[:10], "page": story.page}
    words = phrases("figures", **values, cite=f"[{story.source}]")
    return site + re.sub(r"(?<![\d.,])1 (point|comment)s", r"1 \1", words)


def story_section(
    story: ListedStory, parts: dict[str, Sequence[NoteQuote]], missing: Sequence[str], phrases: Phrases
) -> str:
    """Return the section on a story: its figures, quotes under their headings, and what could not be read."""
    note = f" *{phrases('missing', what=phrases('separator').join(missing))}*" if missing else ""
    lines = [f"# {story_heading(story)}", "", figures(story, phrases) + phrases("stop") + note]
    for name, quotes in parts.items():
        lines += ["", f"**{phrases(name)}**", "", *(one.line(phrases) for one in quotes)] if quotes else []
    return "\n".join(lines) + "\n"


def document_section(title: str, about: str, quotes: Sequence[NoteQuote], phrases: Phrases) -> str:
    """Return the section on a document."""
    head = [f"[{quotes[0].source}] {about}", ""] if about else []
    return "\n".join([f"# {harmless(title)}", "", *head, *(one.line(phrases) for one in quotes)]) + "\n"


def unknown(gaps: Iterable[str], phrases: Phrases) -> list[str]:
    """Return the lines that say what is not known; none without gaps."""
    kept = list(dict.fromkeys(gap.strip().rstrip(".。") for gap in gaps if gap.strip()))
    return [f"## {phrases('unknown')}", "", *(f"- {gap}{phrases('stop')}" for gap in kept)] if kept else []


def split_gaps(text: str) -> tuple[str, list[str]]:
    """Return a file without the part on what is not known, and the lines of that part."""
    lines = text.splitlines()
    start = next((place for place, line in enumerate(lines) if line in HEADINGS_UNKNOWN), len(lines))
    return "\n".join(lines[:start]).strip(), [line[2:] for line in lines[start:] if line.startswith("- ")]


def short_reason(text: str) -> str:
    """Return the first sentence of a tool's error, with hosts in the place of addresses."""
    line = harmless(with_hosts_only(without_marks(text)))
    end = re.search(r"[.。](?:\s|$)", line)
    sentence = (line[: end.start()] if end else line).strip()
    return sentence if len(sentence) <= MAX_REASON_CHARS else f"{sentence[: MAX_REASON_CHARS - 1]}…"


def slug(text: str) -> str:
    """Return a file name's worth of a title; empty for a title without Latin letters."""
    name = ""
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        if len(name) + len(word) >= MAX_SLUG_CHARS:
            break
        name += f"-{word}" if name else word
    return name
