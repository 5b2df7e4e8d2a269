"""Parts of a whole in words, in five languages: two thirds, one in eight, ein Fünftel, un tiers, 三分之一, 半数.

And numbers in words that need these tables: three quarters of a million, half a pound, neun Millionen.
"""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from explorer.reports.verify.numerals import CHINESE_DIGITS, SCALES, SMALL_NUMBERS

_EN = {"third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10}
_DE = {"drittel": 3, "viertel": 4, "fünftel": 5, "sechstel": 6, "siebtel": 7, "achtel": 8, "neuntel": 9, "zehntel": 10}
_FR = {"tiers": 3, "quart": 4, "cinquième": 5, "sixième": 6, "septième": 7, "huitième": 8, "neuvième": 9, "dixième": 10}
_EACH = {"zweite": 2, "dritte": 3, "vierte": 4, "fünfte": 5, "sechste": 6, "achte": 8, "zehnte": 10}
NUMBERS: Mapping[str, int] = {
    **SMALL_NUMBERS, "a": 1, "twenty": 20, "hundred": 100,
    **dict.fromkeys(["ein", "eine", "einen", "einem", "einer", "un", "une"], 1), "zwei": 2, "drei": 3, "vier": 4,
    "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5,
    "neuf": 9, "dix": 10, **CHINESE_DIGITS, "十": 10,
}  # fmt: skip
WHOLES: Mapping[str, int] = {**_EN, **_DE, **_FR, **_EACH}
_COUNT = "a|one|two|three|four|five|six|seven|nine|ein|eine[nmr]?|zwei|drei|vier|fünf|une?|deux|trois|quatre"
_OF = "third|quarter|fifth|sixth|seventh|eighth|ninth|tenth"
_ANY = "|".join([*_DE, *_FR])
_SCALED = r"(?! (?:(?:of )?an? )?(?:hundred|thousand|million|billion|trillion|dozen))"
SHARE = re.compile(
    rf"\b(?P<count>{_COUNT})[ -](?P<whole>(?:{_OF})s?|(?:{_ANY})s?)\b{_SCALED}(?P<point>[ -](?:of a )?"
    r"(?:percentage )?points?\b)?"
    rf"|(?<!first )(?<!second )(?<!and a )\b(?P<half>half(?= (?:of|the|its|their|his|her|as)\b)"
    r"|(?:by|a|nearly|about) half"
    rf"|die Hälfte|la moitié)\b{_SCALED}"
    r"|\bjede[rnms]? (?P<each>zweite|dritte|vierte|fünfte|sechste|achte|zehnte)n?\b"
    r"|(?P<zh_whole>[二三四五六七八九十\d]{1,2})(?:分之|分の)(?P<zh_count>[一二三四五六七八九\d])"
    r"|(?P<zh_half>一半|半数|半數|半分(?![钟鐘之]))",
    re.IGNORECASE,
)

_HINTS = "third quarter fifth ixth eventh ighth inth tenth half tel tiers quart ième"
HINTS = tuple(_HINTS.split())
OTHER_HINTS = ("moitié", "hälfte", "jede", "分之", "分の", "一半", "半数", "半數", "半分")
"""Parts of words of which a line has one, if it has a share: most have none, and need not be searched."""
_SMALL = "two|three|four|five|six|seven|eight|nine"
ONE_IN = re.compile(
    rf" (?:in|out of|in every|von|sur) [$€£]?(?P<all>{_SMALL}|ten|twenty|zehn|dix|\d{{1,3}})\b"
    r"(?![.,]?\d| (?:million|billion|thousand|percent|years?|months?|weeks?|days?|hours?|minutes?))"
)
SOME = re.compile(rf"(?<![\d.,])\b(?:one|{_SMALL}|zwei|drei|vier|\d{{1,2}})$", re.IGNORECASE)
SOME_CHARS = 8
SOME_THINGS = re.compile(rf"(?<![\d.,])\b(one|{_SMALL}|\d{{1,2}}) [a-z]{{3,15}}$", re.IGNORECASE)
"""`three shifts in four`."""
THINGS_CHARS = 26
NO_NOUN = re.compile(r" ?(?:[.,;:)\[]|$)|,? (?:and|but|while)\b")


class WrittenShare(NamedTuple):
    """A part of a whole in a text."""

    start: int
    end: int
    percent: Fraction
    is_points: bool
    """Whether it is a part of a percentage point: a quarter point."""


def shares(text: str) -> Iterator[WrittenShare]:
    """Yield all parts of a whole that are written in words."""
    start = 0
    for line in text.splitlines(keepends=True):
        if any(hint in line.lower() for hint in (HINTS if line.isascii() else (*HINTS, *OTHER_HINTS))):
            yield from _in_line(line, start)
        start += len(line)
    for found in ONE_IN.finditer(text):
        some = SOME.search(text[max(0, found.start() - SOME_CHARS) : found.start()])
        if some is None and NO_NOUN.match(text, found.end()):
            some = SOME_THINGS.search(text[max(0, found.start() - THINGS_CHARS) : found.start()])
        count = _number(some[some.lastindex or 0]) if some else 0
        if some and count < _number(found["all"]):
            percent = Fraction(100 * count, _number(found["all"]))
            yield WrittenShare(found.start() - len(some[0]), found.end(), percent, is_points=False)


def _in_line(line: str, start: int) -> Iterator[WrittenShare]:
    for found in SHARE.finditer(line):
        value = _value(found)
        if value is not None and (found["point"] or value < 1):
            percent = value if found["point"] else 100 * value
            yield WrittenShare(start + found.start(), start + found.end(), percent, is_points=bool(found["point"]))


def _value(found: "re.Match[str]") -> Fraction | None:
    if found["half"] or found["zh_half"]:
        return Fraction(1, 2)
    if found["each"]:
        return Fraction(1, WHOLES[found["each"].lower()])
    if found["count"]:
        return Fraction(_number(found["count"]), _whole(found["whole"]))
    whole = _number(found["zh_whole"])
    return Fraction(_number(found["zh_count"]), whole) if whole else None


def _number(word: str) -> int:
    return int(word) if word.isdigit() else NUMBERS.get(word.lower(), 0)


def _whole(word: str) -> int:
    """Return how many parts a word such as `thirds` makes of a whole."""
    small = word.lower()
    return WHOLES.get(small) or WHOLES[small.removesuffix("s")]


PARTS_OF_SCALE = re.compile(
    rf"\b(?P<count>a|{_SMALL}|nine)[ -](?P<whole>(?:{_OF})s?) of an? "
    r"(?P<scale>hundred|thousand|million|billion|trillion)\b",
    re.IGNORECASE,
)
"""`three quarters of a million`."""
HALF_OF = re.compile(
    r"\b(?:a )?half an?(?= (?:hour|minute|second|day|year|pound|kilo(?:gram|metre|meter)?s?|mile|met(?:er|re)|inch|foot"
    r"|lit(?:er|re)|gallon|tonn?e?|degree|acre|hectare)\b)",
    re.IGNORECASE,
)
"""`half a pound`."""
FOREIGN = re.compile(
    r"\b(zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|deux|trois|quatre|cinq|neuf|dix)"
    r"(?= (?:tausend|millionen|milliarden|mille|millions|milliards|stunden|tagen?|wochen|monaten?|jahren?|heures|jours"
    r"|semaines|mois|ans)\b)",
    re.IGNORECASE,
)
"""`neun Millionen`: number words of other languages are read before a scale or a time only."""


def more_numbers(text: str) -> Iterator[tuple[int, int, Fraction]]:
    """Yield start, end and value of numbers that are parts of a scale or of a unit, or are German or French."""
    for found in PARTS_OF_SCALE.finditer(text):
        part = Fraction(_number(found["count"]), _whole(found["whole"]))
        yield found.start(), found.end(), part * SCALES[found["scale"].lower()]
    for found in HALF_OF.finditer(text):
        yield found.start(), found.end(), Fraction(1, 2)
    for found in FOREIGN.finditer(text):
        yield found.start(), found.end(), Fraction(_number(found[0]))
