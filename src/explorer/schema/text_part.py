"""A part of a long text, as tools show it: how each of them says where it ends, and how to read on."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from explorer.schema.errors import RefusedCallError
from explorer.schema.events import Source
from explorer.schema.messages import JsonObject
from explorer.schema.tool import SourceDraft
from explorer.text.rendering import ModelText, block, code, codes, inline, own, render
from explorer.text.sanitize import single_line

T = TypeVar("T")
TITLE_CHARS = 300
URL_CHARS = 4_000


@dataclass(frozen=True)
class TextPart:
    """The characters of a text from `start` to `end`."""

    text: str
    start: int
    end: int

    @property
    def place(self) -> ModelText:
        """Where it is in the text, and how to read on."""
        total = len(self.text)
        more = own("; read on with offset={end}", end=self.end) if self.end < total else own("")
        return own("characters {start}-{end} of {total}{more}", start=self.start, end=self.end, total=total, more=more)

    @property
    def content(self) -> ModelText:
        """What it says, as a text from outside."""
        return block(self.text[self.start : self.end])

    @property
    def facts(self) -> JsonObject:
        """Its place, for programs."""
        return {"unit": "characters", "first": self.start, "last": self.end, "total": len(self.text)}


def part_at(text: str, offset: int, chars: int, name: str) -> TextPart:
    """Return the part of a text that begins at an offset; `name` is what the text is called in the error.

    Raises:
        RefusedCallError: The text ends before.
    """
    if offset and offset >= len(text):
        words = "offset={offset} is past the end: {name} has {count} characters."
        raise RefusedCallError.of(words, offset=offset, name=name, count=len(text))
    return TextPart(text, offset, min(offset + chars, len(text)))


def lines_of(
    source_id: str, draft: SourceDraft, part: TextPart, more: Iterable[ModelText], *notes: ModelText
) -> ModelText:
    """Return a part of a text as a model reads it, below what is known of the text.

    Args:
        source_id: The id of its source.
        draft: The source.
        part: The part.
        more: What else is known, for the line with author, date and address.
        notes: Lines before the text.
    """
    theirs = [
        f"by {single_line(draft.author, TITLE_CHARS)}" if draft.author else "",
        f"published {single_line(draft.published, TITLE_CHARS)}" if draft.published else "",
        draft.url,
    ]
    return render(
        own("[{id}] {title}", id=code(source_id), title=inline(draft.title, TITLE_CHARS)),
        render(inline(" | ".join(fact for fact in theirs if fact)), *more, between=" | "),
        part.place,
        own("flags: {flags}", flags=codes(draft.flags)) if draft.flags else own(""),
        *notes,
        part.content,
    )


def numbered(sources: Sequence[Source], found: Sequence[T], entry: Callable[[int, str, T], str]) -> str:
    """Return what was found as a list; `entry` is given a number, the id of its source and what was found."""
    pairs = enumerate(zip(sources, found, strict=True), start=1)
    return "\n".join(entry(number, source.id, one) for number, (source, one) in pairs)


def facts_of(draft: SourceDraft) -> JsonObject:
    """Return what a program may want to know of a text that was read."""
    return {
        "title": single_line(draft.title, TITLE_CHARS),
        "url": single_line(draft.url, URL_CHARS),
        "author": single_line(draft.author, TITLE_CHARS),
        "published": single_line(draft.published, TITLE_CHARS),
        "flags": list(draft.flags),
    }
