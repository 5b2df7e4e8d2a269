"""Whether a source has a number: the same value, in whatever form, with a unit that fits."""

import re
from collections.abc import Iterator

from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.plain import words
from explorer.reports.verify.quantities import Quantity, quantities
from explorer.reports.verify.rounding import rounded
from explorer.reports.verify.units import MEASURES, POINTS_OF_PERCENT

FEW = 100
"""Up to here a number is so often in a text by chance that what it counts is looked at."""
NEAR_CHARS = 70
BEHIND = re.compile(r"[ -]([A-Za-z][A-Za-z'-]{2,30})(?: ([A-Za-z][A-Za-z'-]{2,30}))?")
_NO_NOUNS = (
    "is was has this its his us as vs plus minus times across always perhaps towards besides unless yes thus does gas "
    "bus versus less gets says adds runs shows means makes takes sees uses needs gives comes goes lets keeps and or of "
    "in on at to for from by with than the that were are had have but per out over under which who when while after "
    "before during within without about around percent not more most other total"
)
NO_NOUNS = frozenset(_NO_NOUNS.split())
PEOPLE = frozenset(["people", "men", "women", "children", "staff", "feet", "mice", "data"])
NAME_BEFORE = re.compile(r"([A-Z][A-Za-z+#]+) $")
_NO_NAMES = (
    "in on at by of to from the a an and or about around over nearly almost only since until during before after no "
    "number version january february march april may june july august september october november december jan feb mar "
    "apr jun jul aug sep sept oct nov dec some up its it they all for with than these those this that just another "
    "both under between top rank day week year page step part phase figure table section chapter"
)
NO_NAMES = frozenset(_NO_NAMES.split())
MAX_SHOWN = 3


def has_amount(claimed: Quantity, text: str, indexed: IndexedSource) -> str:
    """How a source has a number that a sentence (`text`) names; empty when it does not."""
    name = _name_before(claimed, text)
    if name:
        beside = _beside(name, claimed, indexed)
        if beside is not None:
            return beside
    exact = [one for one in same_amounts(claimed, indexed) if _fits(claimed, text, one, indexed)]
    if exact:
        return "found" if _counts_the_same(claimed, text, exact, indexed) else ""
    if _is_year(claimed, indexed):
        return "found"
    return (
        "rounded, found" if any(_fits(claimed, text, one, indexed) for one in rounded(claimed, text, indexed)) else ""
    )


def same_amounts(claimed: Quantity, indexed: IndexedSource) -> Iterator[Quantity]:
    """The source's numbers with the same value, whatever their unit; and those that are equal in another unit."""
    for value in claimed.values:
        yield from indexed.by_value.get(value, ())
    measure = MEASURES.get(claimed.unit)
    if measure is not None:
        for value in claimed.values:
            yield from (
                one for one in indexed.by_measure.get((measure.of, value * measure.size), ()) if value not in one.values
            )


def _fits(claimed: Quantity, text: str, there: Quantity, indexed: IndexedSource) -> bool:
    """Whether the units of both can be the same."""
    if claimed.per and there.per and claimed.per != there.per:
        return False
    if not claimed.unit and not there.unit:
        return True
    if not there.unit:
        return not counted(indexed.plain, there) and _may_have(claimed, there, indexed)
    if not claimed.unit:
        return not counted(text, claimed)
    return _same_unit(claimed, there)


def _may_have(claimed: Quantity, there: Quantity, indexed: IndexedSource) -> bool:
    """Whether a bare number of the source can be meant with a unit: of a small one the unit must be near."""
    if max(claimed.values) > FEW:
        return True
    if _name_before(there, indexed.plain):
        return False
    around = indexed.plain[max(0, there.start - NEAR_CHARS) : there.end + NEAR_CHARS]
    return "|" in around or any(_like(one, claimed) for one in quantities(around))


def _same_unit(claimed: Quantity, there: Quantity) -> bool:
    one, other = MEASURES.get(claimed.unit), MEASURES.get(there.unit)
    if one is not None and one.of == "points" and there.unit == POINTS_OF_PERCENT:
        return True
    if one is None or other is None:
        return one is other and bool(set(claimed.unit.split("|")) & set(there.unit.split("|")))
    known = {value * other.size for value in there.values}
    return one.of == other.of and (one.size == other.size or any(value * one.size in known for value in claimed.values))


def counted(text: str, one: Quantity) -> str:
    """The stem of the plural noun that a number counts: `server` in `46 idle servers`; empty when none is plain."""
    found = BEHIND.match(text, one.end)
    for word in (found[1], found[2]) if found else ():
        small = (word or "").lower().removesuffix("'")
        if not small or small in NO_NOUNS:
            return ""
        if small in PEOPLE or (small.endswith("s") and not small.endswith(("ss", "us", "is", "ous"))):
            return _stem(small)
    return ""


def _stem(noun: str) -> str:
    if noun.endswith("ies"):
        return noun[:-3]
    return noun.removesuffix("es") if noun.endswith(("ches", "shes", "xes", "sses")) else noun.removesuffix("s")


def _counts_the_same(claimed: Quantity, text: str, there: list[Quantity], indexed: IndexedSource) -> bool:
    """Whether a small number counts in the source what it counts in the sentence.

    Only where the source counts the same things and says another number is it taken as a contradiction.
    """
    noun = counted(text, claimed)
    if not noun or max(claimed.values) > FEW or claimed.unit:
        return True
    if any(_is_near(noun, one, indexed) for one in there):
        return True
    return not any(counted(indexed.plain, one) == noun for one in indexed.quantities)


def _is_near(noun: str, there: Quantity, indexed: IndexedSource) -> bool:
    """Whether a number of the source counts these things, or counts nothing else and they are near."""
    own = counted(indexed.plain, there)
    around = indexed.plain[max(0, there.start - NEAR_CHARS) : there.end + NEAR_CHARS].lower()
    return noun == own or (not own and noun in around)


def counts_there(claimed: Quantity, text: str, indexed: IndexedSource) -> str:
    """`found` when the source itself counts what the sentence counts, with this number; empty otherwise."""
    noun = counted(text, claimed)
    is_there = bool(noun) and any(noun == counted(indexed.plain, one) for one in same_amounts(claimed, indexed))
    return "found" if is_there else ""


def _name_before(claimed: Quantity, text: str) -> str:
    """The name that a bare number belongs to: `Windows` in `Windows 11`."""
    is_whole = not text[claimed.end : claimed.end + 1].isalnum()
    if claimed.unit or claimed.scale != 1 or claimed.is_word or not is_whole:
        return ""
    found = NAME_BEFORE.search(text[max(0, claimed.start - 30) : claimed.start])
    return found[1].lower() if found and found[1].lower() not in NO_NAMES else ""


def _beside(name: str, claimed: Quantity, indexed: IndexedSource) -> str | None:
    """`found` when the source has the name with this number, empty when only with others; None when with none."""
    number = " ".join(words(claimed.text))
    if f" {name} {number} " in indexed.spaced:
        return "found"
    others = re.findall(rf" {re.escape(name)} (\d[\d.]*) ", indexed.spaced)
    return "" if others and not any(other.startswith(f"{number}.") for other in others) else None


def _is_year(claimed: Quantity, indexed: IndexedSource) -> bool:
    """Whether a bare number is in the source, but was read there as a year: 2,000 and 2000."""
    if claimed.unit or len(claimed.values) != 1:
        return False
    return any(day.year == claimed.values[0] and not day.month for day in indexed.days)


def instead(claimed: Quantity, hays: Iterator[IndexedSource]) -> str:
    """What the sources have in its place, in words for the writer; empty when nothing is like it."""
    for indexed in hays:
        others = list(dict.fromkeys(_shown(one, indexed) for one in same_amounts(claimed, indexed)))
        if not others and claimed.unit:
            others = list(dict.fromkeys(_shown(one, indexed) for one in indexed.quantities if _like(one, claimed)))
        if others and len(others) <= 2 * MAX_SHOWN:
            return f"{indexed.source.id} has {', '.join(others[:MAX_SHOWN])}"
    return ""


def _like(one: Quantity, claimed: Quantity) -> bool:
    """Whether both measure the same, and could be taken for each other."""
    mine, other = MEASURES.get(claimed.unit), MEASURES.get(one.unit)
    return mine.of == other.of if mine and other else claimed.unit == one.unit


def _shown(one: Quantity, indexed: IndexedSource) -> str:
    """A number of the source with a word or two of what follows."""
    behind = "" if one.unit else "".join(re.findall(r"^[ -][A-Za-z]+", indexed.plain[one.end : one.end + 30]))
    return f"“{' '.join((one.text + behind).split())}”"
