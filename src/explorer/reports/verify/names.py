"""Names with figures in them (GPT-4o, A100, CVE-2024-1234) and versions (3.12.4, v2) in a plain text."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from explorer.reports.verify.plain import words
from explorer.reports.verify.units import CURRENCY_SIGNS, LETTER_SCALES, MEASURES, PERCENT_WORDS, SCALES


class Named(NamedTuple):
    """A name or a version in a text."""

    start: int
    end: int
    text: str


TOKEN = re.compile(r"(?<![A-Za-z0-9_$€£¥.,])[A-Za-z0-9_]+(?:[-./+#@][A-Za-z0-9_]+)*\+{0,2}")
STARTS_AS_NUMBER = re.compile(r"\d[\d.,]*(?:-[a-z]+)*(?:-?([A-Za-z]+))?(?:[/-].*)?")
"""24-node, 12GB, 3rd, 1990s, 100-metre: a number and what it counts."""
NUMBER_LETTERS = frozenset(
    {*SCALES, *LETTER_SCALES, *MEASURES, *PERCENT_WORDS, "st", "nd", "rd", "th", "s", "am", "pm", "d", "yo", "ish", "e"}
)
_BEFORE_NUMBERS = (
    "mid pre post sub non late early circa ca over under top near multi anti ex no nr fig pp p vol ch sec section step "
    "part level tier type phase stage layer day week month year page line item rank about around some at of to from"
)
BEFORE_NUMBERS = frozenset(_BEFORE_NUMBERS.split())
"""Words that a hyphen or a dot may tie to a number that is one all the same: mid-2023, No.5."""
TIED = re.compile(r"([A-Za-z]+)[-.]\d[\d.,]*s?")
SOURCE_ID = re.compile(r"S\d+")
LETTERS = re.compile(r"[A-Za-z]+")
MARKED_VERSION = re.compile(
    r"(?<![A-Za-z0-9.])(?:v\.? ?|versions? |releases? |ver\.? ?|版本(?:号)?:? ?)"
    r"(\d+(?:\.\d+)*)(?:-?(?:alpha|beta|rc)\.?\d*)?(?![A-Za-z0-9_%]|\.\d|,\d| (?:million|billion|thousand|percent))",
    re.IGNORECASE,
)
DOTTED_VERSION = re.compile(r"(?<![A-Za-z0-9_.])(\d+(?:\.\d+){2,})(?:-?(?:alpha|beta|rc)\.?\d*)?(?![A-Za-z0-9_])")
PIECE = re.compile(r"[a-z]+|\d+|[^a-z\d\s]+")


def names(text: str) -> Iterator[Named]:
    """Words in which letters and figures stand together, but for numbers with their unit."""
    for found in TOKEN.finditer(text):
        token = found[0]
        if _is_name(token):
            yield Named(found.start(), found.end(), token)


def _is_name(token: str) -> bool:
    has_both = any(c.isdigit() for c in token) and any(c.isalpha() for c in token)
    if not has_both or SOURCE_ID.fullmatch(token) or MARKED_VERSION.fullmatch(token):
        return False
    if token[0].isdigit():
        number = STARTS_AS_NUMBER.fullmatch(token)
        return number is None or not _counts(token, number[1] or "")
    tied = TIED.fullmatch(token)
    if tied and tied[1].lower() in BEFORE_NUMBERS:
        return False
    letters = LETTERS.match(token)
    return letters is None or letters[0] not in CURRENCY_SIGNS


def _counts(token: str, letters: str) -> bool:
    is_tied = re.match(r"\d[\d.,]*-", token) is not None
    return is_tied or not letters or letters in NUMBER_LETTERS or letters.lower() in NUMBER_LETTERS


def versions(text: str) -> Iterator[tuple[Named, str]]:
    """Versions that are marked as such or have three parts, each with its figures alone."""
    for pattern in (MARKED_VERSION, DOTTED_VERSION):
        for found in pattern.finditer(text):
            yield Named(found.start(), found.end(), found[0].strip()), found[1]


def release(figures: str) -> tuple[int, ...]:
    """A version as numbers, without zeros at its end: 2.0 is 2."""
    parts = [int(part[:18]) for part in figures.split(".") if part]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def name_pattern(name: str) -> "re.Pattern[str]":
    """What a name looks like among the words of a text: GPT-4o, GPT 4o, gpt4o."""
    pieces = [re.escape(piece) for word in words(name) for piece in PIECE.findall(word)]
    if pieces and pieces[-1] == "s" and len(pieces) > 1:
        pieces.pop()
    return re.compile(r"(?<![a-z0-9])" + " ?".join(pieces) + r"(?![0-9])(?:s(?![a-z])|(?![a-z]))")
