"""All figures of a plain text in one pass: dates, times, names, versions, and numbers in what is left."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from explorer.reports.verify.dates import Dated, dates, times
from explorer.reports.verify.names import Named, names, versions
from explorer.reports.verify.quantities import FILLER, Quantity, quantities

RATIO = re.compile(r"(?<![\d:.])\d{1,4}:\d{1,4}(?![\d:])")


@dataclass(frozen=True, slots=True)
class Figures:
    """What a text has, each with its place in it."""

    dates: tuple[Dated, ...]
    times: tuple[tuple[Named, str], ...]
    """Times of day, with `15:20`; scores like 16:9 are among them."""
    versions: tuple[tuple[Named, str], ...]
    names: tuple[Named, ...]
    quantities: tuple[Quantity, ...]


def figures(text: str, *, is_dotted: bool = False) -> Figures:
    """Find them all; what is part of one is not found again as another."""
    shown = list(_whole_names(text))
    text = _without(text, ((one.start, one.end) for one in shown))
    days = list(dates(text))
    text = _without(text, ((one.start, one.end) for one in days))
    hours = [(Named(start, end, text[start:end]), clock) for start, end, clock in times(text)]
    hours += [
        (Named(*found.span(), found[0]), found[0])
        for found in RATIO.finditer(text)
        if not any(start.start <= found.start() < start.end for start, _ in hours)
    ]
    text = _without(text, ((one.start, one.end) for one, _ in hours))
    releases = _apart(list(versions(text)))
    text = _without(text, ((one.start, one.end) for one, _ in releases))
    return Figures(
        tuple(days), tuple(hours), tuple(releases), tuple(shown), tuple(quantities(text, is_dotted=is_dotted))
    )


def _whole_names(text: str) -> Iterable[Named]:
    """Names, but for dates and times that are written like one: 10Aug2026, 2026-08-10T09:12."""
    return (one for one in names(text) if not re.match(r"\d{4}-\d\d", one.text))


def _apart(found: list[tuple[Named, str]]) -> list[tuple[Named, str]]:
    """The same version is found once, in its longest form."""
    kept: list[tuple[Named, str]] = []
    for one in sorted(found, key=lambda pair: (pair[0].start, -pair[0].end)):
        if not kept or one[0].start >= kept[-1][0].end:
            kept.append(one)
    return kept


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with fillers in place of some parts, so that every place keeps its number."""
    pieces: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if start >= position:
            pieces += [text[position:start], FILLER * (end - start)]
            position = end
    return "".join([*pieces, text[position:]])
