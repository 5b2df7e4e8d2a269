"""Text for models, built of typed parts, so that text from outside cannot get into it without a fence.

`own` takes words of the program, which have to be literals, and values for their fields: numbers, dates and codes of
the program as they are, everything else in a fence. `block` fences a text of any length. `render` joins such parts, and
there is no other way to a `ModelText`; a plain `str` counts as text from outside wherever a model is to read it.

    <<text>>                a name, a title, an address, an error text: on one line, its own `<<` and `>>` broken up
    <<untrusted MARK>>      lines that an outsider wrote; MARK is a hash of them, so they cannot contain their own end
    <<end MARK>>
    <<second-hand MARK>>    lines that a model of this run wrote, which may quote outsiders
    <<end MARK>>
    <<task MARK>>           a helper's task, which the orchestrator wrote, and may quote outsiders
    <<end MARK>>
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import date
from enum import Enum, StrEnum
from pathlib import PurePath
from typing import LiteralString, NamedTuple

from explorer.text.sanitize import single_line, visible

MARK_DIGITS = 16
"""Hexadecimal digits of a fence's mark: a text that contains its own would take 2^64 tries to find."""
MAX_INLINE_CHARS = 200
"""Limit of a text of unknown length in the short form; a longer one gets lines of its own."""
MAX_CODE_CHARS = 40
MAX_ID_CHARS = 12
"""Limit of an id that a service gave: too short for an order."""
DOUBLED = re.compile(r"([<>])(?=\1)")
CODE = re.compile(r"[A-Za-z0-9]+(?:[-_.:][A-Za-z0-9]+){0,6}")
"""An id or a name that the program gave: `S12`, `searcher-2`, `get_hn_comments`, `openai:gpt-5.2`."""


class WrittenBy(StrEnum):
    """Who wrote a text; the word in its fence."""

    OUTSIDER = "untrusted"
    """An outsider: a page, a service, a command, a tool that is not ours."""
    MODEL = "second-hand"
    """A model of this run, or a file of the run."""
    ORCHESTRATOR = "task"
    """The orchestrator, for the helper that is to do it: work, in which an outsider may be quoted."""


FENCE_START = re.compile(rf"<<(?:{'|'.join(WrittenBy)}) ([0-9a-f]{{{MARK_DIGITS}}})>>")
OPENING = re.compile(rf"(?:^|(?<=\n)){FENCE_START.pattern}\n|<<")
INLINE_END = re.compile(r">>(?!>)")


class ModelText(str):
    """Text for a model in which everything from outside is fenced.

    What is made of it with the methods and operators of `str` is a plain `str` again, and is fenced as a whole.
    """

    __slots__ = ()


NOTHING = ModelText()
"""No text."""

Value = str | int | float | date | Enum | BaseException | PurePath
"""A field of the program's words. Only numbers, dates, members of an `Enum` and a `ModelText` need no fence."""


def own(words: LiteralString, /, **values: Value) -> ModelText:
    """Return words of the program for a model.

    Args:
        words: A literal, with a field in braces for each value.
        values: The fields; a `str` is taken for text from outside.

    Returns:
        The words with their values; those from outside are fenced.
    """
    return ModelText(words.format(**{name: _field(value) for name, value in values.items()}))


def _field(value: Value) -> str | int | float | date:
    if isinstance(value, ModelText):
        return value
    if isinstance(value, Enum):
        return str(value.value)
    return value if isinstance(value, int | float | date) else inline(str(value))


def by_user(text: str) -> ModelText:
    """Return the user's own words, which are what an agent is there for: they need no fence."""
    return ModelText(text)


def from_record(text: str) -> ModelText:
    """Return a text of a conversation, which was rendered before it was recorded."""
    return ModelText(text)


def inline(text: str, max_chars: int = 0) -> ModelText:
    """Fence a text from outside on one line; `max_chars` as in `single_line`."""
    kept_apart = DOUBLED.sub(r"\1 ", single_line(text, max_chars))
    return ModelText(f"<<{kept_apart}>>")


def block(text: str, by: WrittenBy = WrittenBy.OUTSIDER) -> ModelText:
    """Fence a text on lines of its own.

    Args:
        text: Any text.
        by: Who wrote it.

    Returns:
        The text between marks; nothing for a text that nobody can see.
    """
    clean = visible(text)
    if not clean:
        return ModelText()
    mark = hashlib.sha256(clean.encode()).hexdigest()[:MARK_DIGITS]
    return ModelText(f"<<{by} {mark}>>\n{clean}\n<<end {mark}>>")


def fenced(text: str, by: WrittenBy = WrittenBy.OUTSIDER) -> ModelText:
    """Return any text for a model: one that is rendered as it is, any other in the shorter fence that takes it."""
    if isinstance(text, ModelText):
        return text
    is_short = by is WrittenBy.OUTSIDER and len(text) <= MAX_INLINE_CHARS and "\n" not in text
    return inline(text) if is_short and text else block(text, by)


def code(name: str, max_chars: int = MAX_CODE_CHARS) -> ModelText:
    """Return an id or a name that the program gave as it is; anything that does not look like one is fenced."""
    return ModelText(name) if len(name) <= max_chars and CODE.fullmatch(name) else inline(name)


def render(*parts: ModelText, between: LiteralString = "\n") -> ModelText:
    """Join parts, without the empty ones."""
    return ModelText(between.join(part for part in parts if part))


def codes(names: Iterable[str]) -> ModelText:
    """Return ids or names that the program gave as a list."""
    return render(*map(code, names), between=", ")


class Part(NamedTuple):
    """A stretch of a rendered text."""

    start: int
    end: int
    opening: str
    """The mark before the text of a fence; empty for words of the program."""
    closing: str
    """The mark after it."""


def parts_of(text: str) -> Iterator[Part]:
    """Yield words and fenced texts in turn, without the marks; a fence without an end goes on to the text's end."""
    place = 0
    while found := OPENING.search(text, place):
        yield Part(place, found.start(), "", "")
        closing = f"\n<<end {found[1]}>>" if found[1] else ">>"
        if found[1]:
            end = text.find(closing, found.end() - 1)
        else:
            ending = INLINE_END.search(text, found.end())
            end = -1 if ending is None else ending.start()
        start, end = found.end(), len(text) if end < 0 else max(found.end(), end)
        yield Part(start, end, found[0], closing)
        place = min(len(text), end + len(closing))
    yield Part(place, len(text), "", "")


def fenced_lines(text: str) -> list[str]:
    """Return the lines of the first fence on lines of its own, to the end of the text where its end is missing.

    Only the mark that began a fence ends it, so text behind a false mark is still inside.
    """
    for part in parts_of(text):
        if FENCE_START.match(part.opening):
            return text[part.start : part.end].split("\n")
    return []


def without_marks(text: str) -> str:
    """Return a rendered text for people."""
    return "".join(text[part.start : part.end] for part in parts_of(text))


def first_chars(text: ModelText, most: int) -> ModelText:
    """Return the beginning of a rendered text, with the fence closed that was cut."""
    part = _part_at(text, most)
    return text if most >= len(text) else ModelText(text[: _within(part, most)] + part.closing)


def beginning_of(text: str, most: int) -> ModelText:
    """Return the first lines of a text that was rendered before, as a journal has it, with the fence closed."""
    shown = first_chars(ModelText(text[: 2 * most + MARK_DIGITS]), most)
    line_end = shown.rfind("\n", 0, most)
    return shown if len(text) <= most or line_end < most // 2 else first_chars(ModelText(shown), line_end)


def last_chars(text: ModelText, most: int) -> ModelText:
    """Return the end of a rendered text, with the fence opened again that was cut."""
    start = len(text) - most
    part = _part_at(text, start)
    return text if start <= 0 else ModelText(part.opening + text[_within(part, start) :])


def _within(part: Part, place: int) -> int:
    return min(max(place, part.start), part.end)


def _part_at(text: str, place: int) -> Part:
    """Return the stretch in which a place is; of a place within a mark, the fenced text next to it."""
    found = Part(0, 0, "", "")
    for part in parts_of(text):
        if part.start - len(part.opening) > place:
            break
        found = part
    return found
