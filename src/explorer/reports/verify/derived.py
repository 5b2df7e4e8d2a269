"""Numbers that no source can have, because the writer counted or worked them out, as opposed to false ones.

Each rule is narrow: what it lets pass must be plain from the words of the sentence itself.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from itertools import islice

from explorer.reports.verify.figures import Quantity
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.reports.verify.numerals import MEASURES, PERCENT
from explorer.reports.verify.passages import Figure

OWN_COUNT = "a count of the writer's own"
OF_READ = "a count of what was read"
OF_TEXT = "a counter of the text"
AN_ORDINAL = "an ordinal"
A_PLACE = "a place in a list"
RANKS = (AN_ORDINAL, A_PLACE)
COUNTED = (OWN_COUNT, OF_READ, OF_TEXT)
"""Found only where the source counts the same things; a number that happens to be there proves nothing."""
FEW_COUNTED = 12
MANY_LISTED = 500
DISCOURSE = (
    "commenters?|comments|replies|posters?|themes?|topics?|points|arguments?|counterarguments?|camps?|sides|groups|"
    "examples?|reasons?|issues|things|threads?|stories|story|posts|articles?|sources?|reports?|findings?|questions?|ways|"
    "factors?|categories|sections?|aspects?|views|viewpoints?|opinions?|critics|others|them|these|those|clusters?|"
    "strands?|lessons?|takeaways?|claims?|concerns?|objections?|schools?|pages|results|hits|items|entries|headlines?|"
    "submissions?|discussions?|positions?|perspectives?|observations?|facts?|kinds|types|pieces|accounts|readers"
)
COUNTS = re.compile(rf" (?:[A-Za-z-]+ ){{0,3}}?(?:{DISCOURSE})\b", re.IGNORECASE)
COUNTS_HERE = re.compile(
    r"(?:大|个|個|种|種|类|類|点|點|条|條|项|項|则|派|组|位|名|篇)?(?:主要|不同|核心|关键|重要)?(?:的)?"
    r"(?:主题|主題|话题|观点|觀點|评论者|网友|评论|回复|原因|理由|方面|问题|問題|例子|阵营|派|故事|帖子|文章|来源|报道|结论|发现"
    r"|要点|类别|部分|疑问|争议|用户|因素|教训|条目|结果|话|点|事)"
)
OF_A_LIST = re.compile(
    r"(?:\b\d{1,3}|\b[a-z]+) (?:of|out of|from) (?:the |these |all )?(?:\d{1,3}|[a-z]+) (?:[a-z-]+ ){0,2}"
    r"(?:stories|sources|posts|articles|threads|pages|results|hits|items|entries|submissions|headlines)\b"
    r"|\b\d{1,3} (?:further |other |more |remaining )*"
    r"(?:stories|sources|posts|articles|threads|pages|results|hits|entries)"
    r" (?:of|on|in) the (?:list|search|front page)\b",
    re.IGNORECASE,
)
OF_A_CHINESE_LIST = re.compile(
    r"\d{1,3} ?(?:篇|条|个|则|项)(?:故事|文章|帖子|来源|结果|条目)?(?:中|里|之中)(?:的|有)? ?\d{0,3}"
    r"|另有 ?\d{1,3} ?(?:篇|条|个|则|项)"
)
OF_THOSE_NAMED = re.compile(r"\b(?:of|all) (?:the |these |those )?$", re.IGNORECASE)
OF_SET = re.compile(
    r"^ of (?:the|these|those|its|their|[\w'-]+'s) [a-z]+ [a-z]+|\bof (?:the|these|those|its|their|[\w'-]+'s) $"
)
"""`the largest of the three parks`: a set that the reader knows, counted by the writer."""
THE_TWO = re.compile(r"\b(?:the|these|those|both|its|their) $", re.IGNORECASE)
NO_NOUN_BEHIND = re.compile(r"\s*(?:[.,;:!?)]|$)")
RANK_BEFORE = re.compile(
    r"(?:\b(?:top|rank(?:ed|s|ing)?(?: at)?|no\.?|nr\.?|place|position|part|step|point|item|section|reason"
    r"|front[- ]page)"
    r"|#|№|第|排名(?:第)?|前) ?$",
    re.IGNORECASE,
)
ORDINAL = re.compile(r"(?:st|nd|rd|th)\b|-(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)\b")
DECADE = re.compile(r"s\b")
COUNTER = re.compile(r"\(\d{1,2}\)")
COUNTER_BEHIND = re.compile(r"\)\s")
AGE = re.compile(
    r" ?(?:old\b|ago\b|after (?:posting|it was posted|publication|submission|going up)|since (?:posting|it was posted)"
    r"|前|后|之前|以前)",
    re.IGNORECASE,
)
AGE_BEFORE = re.compile(
    r"\b(?:after|within|in|for)(?: (?:the|its))?(?: (?:first|past|last))?(?: (?:about|roughly|around|some))? ?[~≈]?$",
    re.IGNORECASE,
)
HOUR_NS = MEASURES["hour"].size
POSTS = frozenset(["story", "comments", "post", "comment", "poll", "job", "thread"])
THREADS = frozenset(["comments", "thread"])
SLACK_H = Fraction(1, 10)
RATE_SHARE = Fraction(3, 100)
TIED = Fraction(1, 2)
PAIR = 2
YEARS = frozenset(["years", "year", "Jahre", "Jahren", "年", "ans", "années"])


def own_count(one: Quantity, text: str) -> str:
    """Return why a number is the writer's own counting; empty when that is not plain."""
    value = max(one.values)
    before, behind = text[max(0, one.start - 24) : one.start], text[one.end : one.end + 60]
    if COUNTER.fullmatch(text[max(0, one.start - 1) : one.end + 1]) or _is_counter(one, text):
        return OF_TEXT
    if ORDINAL.match(behind) or (DECADE.match(behind) and value >= FEW_COUNTED):
        return AN_ORDINAL
    if value <= MANY_LISTED and RANK_BEFORE.search(before):
        return A_PLACE
    if value <= MANY_LISTED and _is_of_a_list(one, text):
        return OF_READ
    is_bare = not one.unit or (one.is_word and _measures(one) in {"points", "comments"})
    if value > FEW_COUNTED or value.denominator != 1 or not is_bare:
        return ""
    rest = text[one.end - (len(one.unit) if one.unit and one.is_word else 0) :][:60]
    is_of_those = one.is_word and OF_THOSE_NAMED.search(before) and NO_NOUN_BEHIND.match(behind)
    is_pair = one.is_word and value == PAIR and THE_TWO.search(before)
    is_known_set = is_pair or (one.is_word and (OF_SET.search(before) or OF_SET.match(behind)))
    is_counted = COUNTS.match(" " + rest.lstrip(" -")) or COUNTS_HERE.match(rest.lstrip())
    return OWN_COUNT if is_of_those or is_known_set or is_counted else ""


def is_rank(one: Figure, text: str) -> bool:
    """Return whether a number of a source is an ordinal or a place in a list: `133rd`, `No. 11`."""
    return bool(ORDINAL.match(text, one.end) or RANK_BEFORE.search(text[max(0, one.start - 24) : one.start]))


def _is_counter(one: Quantity, text: str) -> bool:
    """Return whether a number is written as `2)`, which no bracket opens."""
    before = text[: one.start]
    return COUNTER_BEHIND.match(text, one.end) is not None and before.count("(") == before.count(")")


def _is_of_a_list(one: Quantity, text: str) -> bool:
    """Return whether a number counts what was read: `4 of 30 stories`."""
    begin, end = max(0, one.start - 40), one.start + 80
    found = (match for pattern in (OF_A_LIST, OF_A_CHINESE_LIST) for match in pattern.finditer(text, begin, end))
    return any(match.start() <= one.start and one.end <= match.end() for match in found)


def worked_out(one: Quantity, beside: Sequence[Quantity], clocks: Sequence[str] = (), years: Sequence[int] = ()) -> str:
    """Return how a number follows from two others of its sentence that are in the source; empty when it does not.

    With more than two, something would fit by chance.
    """
    if len(clocks) == PAIR and _minutes_between(*clocks) == _minutes(one):
        return f"worked out from {clocks[0]} and {clocks[1]}"
    if len(years) == PAIR and one.unit in YEARS and max(one.values) == abs(years[1] - years[0]):
        return f"worked out from {years[0]} and {years[1]}"
    alike = [quantity for quantity in beside if one.unit and quantity.unit == one.unit]
    pair = alike if len(alike) == PAIR else beside
    if len(pair) != PAIR:
        return ""
    first, second = (max(quantity.values) for quantity in pair)
    is_so = bool(first and second) and _follows(one, first, second, (pair[0].unit, pair[1].unit))
    return f"worked out from {pair[0].text} and {pair[1].text}" if is_so else ""


def _follows(one: Quantity, first: Fraction, second: Fraction, units: tuple[str, str]) -> bool:
    """Return whether a number is the sum, the difference, the change, the ratio, the share or the part of two."""
    value, mine = max(one.values), one.unit
    if mine and mine != PERCENT and mine in units and set(units) & {"", PERCENT}:
        whole, part = (first, second) if units[0] == mine else (second, first)
        return _equals(value, whole * part / 100 if PERCENT in units else whole / part, one)
    bare = {unit.split("|")[0] for unit in units if unit}
    if len(bare) > 1:
        return False
    if mine == PERCENT and any(
        _equals(value, known, one) for known in (abs(second - first) / first * 100, first / second * 100)
    ):
        return True
    if _measures(one) == "times" and _equals(value, max(first, second) / min(first, second), one):
        return True
    unit = units[0] or units[1]
    is_same = mine == unit or not unit or (unit == PERCENT and mine in {"pp", "points", "point"})
    # The difference of two percentages is given in points, and is no percentage.
    return is_same and mine != PERCENT and value in {first + second, abs(first - second)}


def part_of_whole(one: Quantity, beside: Sequence[Quantity], indexed: IndexedSource) -> str:
    """Return how a number is the part of one beside it that the source gives in words; empty when it is not."""
    for whole in beside:
        for part in indexed.shares:
            is_part = max(one.values) == max(whole.values) * max(part.values) / 100
            if is_part and one.unit in {"", whole.unit}:
                return f"worked out from {whole.text} and {part.text}"
    return ""


def _measures(one: Quantity) -> str:
    """Return what the unit of a number measures; empty where that is not known."""
    return MEASURES[one.unit].of if one.unit in MEASURES else ""


def _minutes(one: Quantity) -> Fraction | None:
    return hours(one) * 60 if _measures(one) == "time" else None


def _minutes_between(begin: str, end: str) -> Fraction:
    first, second = (int(hour) * 60 + int(minute) for hour, minute in (begin.split(":"), end.split(":")))
    return Fraction((second - first) % (24 * 60))


def _equals(value: Fraction, known: Fraction, one: Quantity) -> bool:
    """Return whether two numbers are equal as far as they are written out."""
    written = one.text.split(".")[1] if "." in one.text else ""
    return abs(value - known) <= TIED / 10 ** sum(c.isdigit() for c in written)


def is_rate(one: Quantity) -> bool:
    """Return whether a number is of points an hour."""
    return one.per == "hour" and (not one.unit or _measures(one) == "points")


def is_age(one: Quantity, text: str) -> bool:
    """Return whether a number says how old a post was."""
    is_shown = AGE.match(text, one.end) or AGE_BEFORE.search(text[max(0, one.start - 40) : one.start])
    return _measures(one) == "time" and bool(is_shown)


def post_facts(one: Quantity, indexed: IndexedSource, around: Sequence[Quantity], text: str) -> tuple[bool, str] | None:
    """Check points an hour or an age against what is known of a post; None when it is neither, or no post.

    Both were shown when the post was read and are not in its text: they are points and time of posting, worked out.
    """
    # Commenters speak of hours of their own.
    is_own = indexed.source.kind in THREADS and not is_rate(one) and not AGE.match(text, one.end)
    if indexed.source.kind not in POSTS or is_own or not (is_rate(one) or is_age(one, text)):
        return None
    ages = [hours(other) for other in around if is_age(other, text)]
    rates = [other for other in around if is_rate(other)]
    if ages and rates:
        return _rate_fits(rates[0], ages[0], indexed)
    known_h = age_when_read(indexed)
    if known_h is None:
        return True, "worked out when the post was read"
    if is_age(one, text):
        if hours(one) <= known_h * (1 + RATE_SHARE) + SLACK_H:
            return True, "the age when the post was read"
        return False, f"it was {float(known_h):.1f} hours old"
    needed = [points / max(one.values) for points in _points(indexed) if max(one.values)]
    is_possible = not needed or min(needed) <= max(known_h, Fraction(1)) * (1 + RATE_SHARE) + SLACK_H
    return is_possible, "worked out from points and age" if is_possible else "its points and age give another rate"


def _rate_fits(rate: Quantity, age_h: Fraction, indexed: IndexedSource) -> tuple[bool, str]:
    points = _points(indexed)
    least, most = max(age_h - SLACK_H, Fraction(1)), max(age_h + SLACK_H, Fraction(1))
    value = max(rate.values)
    if not points or any(one / most * (1 - RATE_SHARE) <= value <= one / least * (1 + RATE_SHARE) for one in points):
        return True, "worked out from points and age"
    rate_then = float(points[0] / max(age_h, 1))
    return False, f"{int(points[0])} points in {float(age_h):.1f} hours are {rate_then:.1f} an hour"


def _points(indexed: IndexedSource) -> list[Fraction]:
    """Return the points of a post, as the first lines of its text tell them."""
    known = (one for one in indexed.quantities if _measures(one) == "points" and not one.is_word)
    return [max(one.values) for one in islice(known, 1)]


def age_when_read(indexed: IndexedSource) -> Fraction | None:
    """Return the hours between posting and reading; None when the source does not say."""
    try:
        posted = datetime.fromisoformat(indexed.source.published)
    except ValueError:
        return None
    if posted.tzinfo is None:
        return None
    return Fraction(int((indexed.source.retrieved - posted).total_seconds()), 3600)


def hours(one: Quantity) -> Fraction:
    """Return an age in hours."""
    return max(one.values) * MEASURES[one.unit].size / HOUR_NS
