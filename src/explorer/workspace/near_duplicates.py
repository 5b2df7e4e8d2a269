"""Near-duplicates: a source whose text is nearly that of another at another address, and whether it was altered.

Likely pairs are found by hashes of runs of words, the smallest of each text (a bottom-k sketch, Broder 1997), so a
further text costs the same however many there are; only likely pairs are then compared word by word.
"""

import heapq
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import urlsplit

from explorer.schema.events import Source
from explorer.text.differences import compare, normal, words

NEAR_DUPLICATE = "near_duplicate"
"""`near_duplicate:S3`: says the same as S3, which is the primary."""
ALTERED_COPY = "altered_copy"
"""`altered_copy:S3`: the same, but for numbers or names that differ."""
PRIMARY_OF = "primary_of"
"""`primary_of:S3`: S3, stored earlier, is the copy."""
DIFFERS = "differs"
"""`differs:12 → 21`: what S3 says, and what this source says."""
MIN_WORDS = 40
"""Shorter texts share too much by chance."""
RUN_WORDS = 4
SKETCH_HASHES = 48
SHARED_FOR_LIKELY = 8
"""A likely pair shares one hash in so many."""
MAX_SKETCHED_CHARS = 40_000
"""Of a longer text only so much, from its beginning, is compared."""
MAX_INDEXED = 5_000
"""Sources that later ones are compared with: what bounds the memory."""
MAX_SHARING = 64
"""Sources under one hash; what more texts than that share is a site's frame."""
MAX_LIKELY = 3
MIN_COVERED = 0.85
MIN_COVERED_ON_ONE_SITE = 0.92
"""A site's pages share their frame."""
MIN_LENGTH_RATIO = 0.4
SEARCH_HIT = "search_hit"
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
RELATION = re.compile(rf"({NEAR_DUPLICATE}|{ALTERED_COPY}|{PRIMARY_OF}):(S\d+)")


@dataclass(frozen=True)
class Text:
    """A source's text with what decides which of two is the primary."""

    url: str
    title: str
    kind: str
    published: str
    text: str


@dataclass(frozen=True)
class Relation:
    """What a source is to another one."""

    kind: str
    """`near_duplicate`, `altered_copy` or `primary_of`."""
    other: str
    """The other source's id."""
    differs: tuple[str, ...]
    """`12 → 21`: what the other says, and what this one says."""


def sketch(text: str) -> tuple[int, ...]:
    """The smallest hashes of a text's runs of words; empty for a text too short to tell."""
    found = words(normal(text[:MAX_SKETCHED_CHARS]).lower())
    if len(found) < MIN_WORDS:
        return ()
    runs = zip(*(found[start:] for start in range(RUN_WORDS)), strict=False)
    # CRC-32 and not `hash`: a resumed run is another process and must find the same pairs.
    return tuple(heapq.nsmallest(SKETCH_HASHES, {zlib.crc32(" ".join(run).encode()) for run in runs}))


class SketchIndex:
    """The sketches of all sources, to find which a further one is like."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._sharing: dict[int, list[int]] = {}

    def add(self, identifier: str, hashes: Sequence[int]) -> None:
        """Take in a source."""
        if not hashes or len(self._ids) >= MAX_INDEXED:
            return
        place = len(self._ids)
        self._ids.append(identifier)
        for number in hashes:
            places = self._sharing.setdefault(number, [])
            if len(places) < MAX_SHARING:
                places.append(place)

    def likely(self, hashes: Sequence[int]) -> list[str]:
        """The sources a text may be nearly the same as, the likeliest first."""
        counts = Counter(place for number in hashes for place in self._sharing.get(number, ()))
        least = max(2, len(hashes) // SHARED_FOR_LIKELY)
        # By number and not by place: a resumed run takes sources in in another order.
        ranked = sorted((-count, int(self._ids[place][1:])) for place, count in counts.items() if count >= least)
        return [f"S{number}" for _, number in ranked[:MAX_LIKELY]]


def flags_between(earlier: Text, later: Text, earlier_id: str) -> tuple[str, ...]:
    """The flags the later stored source gets for what it is to the earlier one; empty when they are not alike."""
    if _place(earlier.url) == _place(later.url):
        return ()
    is_one_site = _site(earlier.url) == _site(later.url)
    if is_one_site and SEARCH_HIT in {earlier.kind, later.kind}:
        return ()
    one, other = earlier.text[:MAX_SKETCHED_CHARS], later.text[:MAX_SKETCHED_CHARS]
    if min(len(one), len(other)) < MIN_LENGTH_RATIO * max(len(one), len(other)):
        return ()
    likeness = compare(one, other)
    if likeness.covered < (MIN_COVERED_ON_ONE_SITE if is_one_site else MIN_COVERED):
        return ()
    if likeness.changes and is_one_site and _are_other_titles(earlier.title, later.title):
        # Another page made from the same form: another town's weather, another version's manual.
        return ()
    copied = ALTERED_COPY if likeness.changes else NEAR_DUPLICATE
    kind = PRIMARY_OF if _is_primary(later, earlier) else copied
    return (f"{kind}:{earlier_id}", *(f"{DIFFERS}:{change}" for change in likeness.changes))


def _are_other_titles(one: str, other: str) -> bool:
    """Whether each has a word that the other lacks."""
    mine, theirs = (Counter(words(normal(title).lower())) for title in (one, other))
    return bool(mine - theirs) and bool(theirs - mine)


def _is_primary(later: Text, earlier: Text) -> bool:
    """Whether the later stored one is the primary: published earlier, else named by the other, else stored first."""
    mine, theirs = _day(later.published), _day(earlier.published)
    if mine is not None and theirs is not None and mine != theirs:
        return mine < theirs
    names_later, names_earlier = _place(later.url) in earlier.text, _place(earlier.url) in later.text
    return names_later and not names_earlier


def _day(published: str) -> date | None:
    found = ISO_DATE.match(published)
    try:
        return date.fromisoformat(found[0]) if found is not None else None
    except ValueError:
        return None


def _place(url: str) -> str:
    """An address without what the same page is also found under: scheme, `www.`, a slash at the end, a fragment."""
    return re.sub(r"^\w+://(?:www\.)?", "", url.partition("#")[0]).rstrip("/")


def _site(url: str) -> str:
    try:
        return urlsplit(url).netloc.removeprefix("www.").lower()
    except ValueError:  # what a source gives as its address is kept, even if it is none
        return url


def relation_of(flags: Iterable[str]) -> Relation | None:
    """What a source's flags say it is to another one; None when they say nothing of the kind."""
    known = list(flags)
    for flag in known:
        found = RELATION.fullmatch(flag)
        if found is not None:
            marks = tuple(flag.removeprefix(f"{DIFFERS}:") for flag in known if flag.startswith(f"{DIFFERS}:"))
            return Relation(found[1], found[2], marks)
    return None


def plain_flags(flags: Iterable[str]) -> list[str]:
    """Flags as a reader of a report understands them: without ids, and without what only the engine needs."""
    labels = {NEAR_DUPLICATE: "repeats another source", ALTERED_COPY: "altered copy of another source"}
    names = [(flag, flag.partition(":")[0]) for flag in flags]
    kept = [labels.get(name, flag.replace("_", " ")) for flag, name in names if name not in {PRIMARY_OF, DIFFERS}]
    return list(dict.fromkeys(kept))


def advice(source: Source) -> str:
    """What a model is told of a source that is a copy, or has one; empty for all others.

    The differing words come from outside and are not in it.
    """
    relation = relation_of(source.flags)
    if relation is None:
        return ""
    other = relation.other
    match relation.kind:
        case "near_duplicate":
            return f"{source.id} repeats {other}: cite {other}; together they are one source, not two."
        case "altered_copy":
            return f"{source.id} is an altered copy of {other}: cite {other}."
        case _ if relation.differs:
            return f"{other} is an altered copy of {source.id}: cite {source.id}."
        case _:
            return f"{other} repeats {source.id}: cite {source.id}; together they are one source, not two."
