"""Compares two texts that are nearly the same: how much they share, and which numbers and names differ.

Only numbers and names count as a difference: a copy may be shortened, wrapped and have other headings, but with 21 for
12, or Bob for Alice, it has another meaning. Words are the unit; each Chinese or Japanese character is one.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache

from explorer.text.words import CJK, CJK_LETTER, sentences

LETTER = rf"[^\W_{CJK}]"
WRAPPED = re.compile(r"(?<=[^\s.!?:;|])\n(?=[a-z])")
"""The end of a line in the middle of a sentence."""
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
ADDRESS = re.compile(r"https?://\S+")
SCALES = frozenset(("hundred", "thousand", "million", "billion", "trillion", "percent", "bn", "dozen"))
CURRENCIES = frozenset("$€£¥")
NUMERALS = "〇零一二两三四五六七八九十百千万亿"
CJK_NUMBER = re.compile(rf"[{NUMERALS}]{{2,}}|[{NUMERALS}](?=[年月日号点个名人元倍成岁天次])")
SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱郭林罗梁宋郑谢韩唐冯董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田"
    "姜范石姚谭廖邹熊陆郝孔崔康毛邱秦史顾侯邵孟龙段雷钱汤尹黎武贺龚"
)
PLACES = "省市县区州国村镇港湾岛山河江湖院校司行社局部厂队"
"""The last characters of names of places and organisations."""
MAX_NAME_CHARS = 6
STARTERS = frozenset(
    re.findall(
        r"\w+",
        """
        a an the this that these those it its he she they we i you in on at by for from to of with as if when
        while after before since but and or so yet however still also then there here what which who why how
        where no not all some many most both each every one two three his her their our my your is are was were
        do does did has have had can could might would should now today according although because despite
        during instead meanwhile more moreover once only other over such than though thus under until nobody
        everybody someone everyone anyone nothing something everything
        """,
    )
)
"""Words that begin a sentence with a capital and are not names; without `may` and `will`, which can be names."""
MIN_ALIGNED_WORDS = 5
"""The least length of a compared sentence: shorter lines, such as a count of views, differ in all copies."""
MIN_ALIKE = 0.6
MAX_UNEQUAL = 80
"""Sentences of each text that are compared one by one; texts with more are not alike."""
MAX_SENTENCE_WORDS = 300
MAX_CHANGES = 12
HEADLINE_SHARE = 0.6
MAX_TOKEN_CHARS = 40
MAX_MEETINGS = 4_000
"""Pairs of equal characters in two sentences with Chinese; aligning more takes time by the cube of their length."""


@cache
def _word() -> "re.Pattern[str]":
    """Return the pattern of a word; with all of Chinese, it takes milliseconds to compile."""
    return re.compile(rf"[{CJK}]|{LETTER}+(?:[.,:/'\u2019-]{LETTER}+)*|[$€£¥%]")


@cache
def _cjk_name() -> "re.Pattern[str]":
    """Return the pattern of a name of a person or a place; see `_word`."""
    return re.compile(rf"[{SURNAMES}][{CJK}]{{1,2}}|[{CJK}]{{1,5}}[{PLACES}]")


@dataclass(frozen=True)
class Change:
    """A number or a name of one text, and the one that replaces it in the other."""

    before: str
    after: str
    label: str = ""
    """The word after the number, if there is one."""

    def __str__(self) -> str:
        """Return the change for people: `12 → 21`."""
        return f"{self.before} → {self.after}"

    @property
    def labelled(self) -> str:
        """The change with its word: `points 120 → 340`."""
        return f"{self.label} {self}".strip()


@dataclass(frozen=True)
class Likeness:
    """How much two texts share, and what differs."""

    covered: float
    """The share of the shorter text's words that the other has, 0 to 1."""
    changes: tuple[Change, ...]


def normal(text: str) -> str:
    """Return the form in which texts are compared: one spelling for each character, no separators, no addresses."""
    return THOUSANDS.sub("", unicodedata.normalize("NFKC", ADDRESS.sub(" ", text)))


def words(text: str) -> list[str]:
    """Return the words of a text in its normal form, with their capitals."""
    return _word().findall(text)


def pieces_of(text: str) -> list[str]:
    """Split a text into sentences, lines and items of lists."""
    return [piece for line in WRAPPED.sub(" ", text).splitlines() for piece in sentences(line)]


def compare(earlier: str, later: str) -> Likeness:
    """Compare two texts sentence by sentence; a sentence without an equal is compared with the one most like it."""
    first, second = (_Words.of(pieces_of(text)) for text in (earlier, later))
    shorter = min(first.count, second.count)
    if not shorter:
        return Likeness(0.0, ())
    covered = first.words_shared_with(second)
    left, right = first.without(second), second.without(first)
    if len(left) > MAX_UNEQUAL or len(right) > MAX_UNEQUAL:
        return Likeness(min(1.0, covered / shorter), ())
    changes: list[Change] = []
    names = _Naming(first.lower & second.lower)
    for one, other in _pairs(left, right):
        covered += sum((Counter(map(str.lower, one)) & Counter(map(str.lower, other))).values())
        if min(len(one), len(other)) >= MIN_ALIGNED_WORDS:
            changes += names.changes(one, other)
    return Likeness(min(1.0, covered / shorter), tuple(dict.fromkeys(changes))[:MAX_CHANGES])


def changes_between(earlier: str, later: str) -> tuple[Change, ...]:
    """Return the numbers and names that differ between two sentences, or two short texts."""
    one, other = words(normal(earlier)), words(normal(later))
    lower = {word for word in one if word.islower()} & {word for word in other if word.islower()}
    return tuple(_Naming(frozenset(lower)).changes(one, other))


@dataclass(frozen=True)
class _Words:
    """A text as a bag of sentences, each a list of words."""

    rows: tuple[tuple[str, ...], ...]
    bag: "Counter[tuple[str, ...]]"
    """The sentences in lower case, each with its count."""
    count: int
    lower: frozenset[str]
    """Words that occur in lower case, and so are not names."""

    @classmethod
    def of(cls, pieces: Sequence[str]) -> "_Words":
        rows = tuple(found for piece in pieces if (found := tuple(words(normal(piece))[:MAX_SENTENCE_WORDS])))
        bag = Counter(tuple(word.lower() for word in row) for row in rows)
        return cls(rows, bag, sum(map(len, rows)), frozenset(word for row in rows for word in row if word.islower()))

    def without(self, other: "_Words") -> list[tuple[str, ...]]:
        """Return the sentences that the other text does not have, in order."""
        spare = self.bag - other.bag
        return [row for row in self.rows if tuple(word.lower() for word in row) in spare]

    def words_shared_with(self, other: "_Words") -> int:
        return sum(len(row) * count for row, count in (self.bag & other.bag).items())


def _pairs(
    left: Sequence[Sequence[str]], right: Sequence[Sequence[str]]
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Yield each sentence with the one most like it in the other text, if one is similar enough."""
    bags = [Counter(map(str.lower, row)) for row in right]
    free = set(range(len(right)))
    for row in left:
        own = Counter(map(str.lower, row))
        scored = [(_dice(own, bags[place]), -place) for place in free]
        score, place = max(scored, default=(0.0, 0))
        if score >= MIN_ALIKE:
            free.discard(-place)
            yield row, right[-place]


def _dice(one: "Counter[str]", other: "Counter[str]") -> float:
    return 2 * (one & other).total() / max(1, one.total() + other.total())


@dataclass(frozen=True)
class _Naming:
    """Finds changes, with the words that are not names."""

    lower: frozenset[str]

    def changes(self, one: Sequence[str], other: Sequence[str]) -> list[Change]:
        """Return changed numbers, then names; what only one side has was left out, and is not a change."""
        found = _exchanged(one, other, _numbers)
        if not any(map(_is_headline, (one, other))):
            found += _exchanged(one, other, self._names)
        found += _exchanged(one, other, _cjk_numbers)
        return found + _cjk_names("".join(one), "".join(other))

    def _names(self, row: Sequence[str]) -> list[tuple[str, str]]:
        """Return the runs of capitalised words."""
        runs: list[list[str]] = [[]]
        for place, word in enumerate(row):
            is_opening = word.lower() in STARTERS or (place == 0 and word.lower() in self.lower)
            if word[0].isupper() and not is_opening and not any(map(str.isdigit, word)):
                runs[-1].append(word)
            elif runs[-1]:
                runs.append([])
        return [(" ".join(run), "") for run in runs if run]


def _is_headline(row: Sequence[str]) -> bool:
    """Return whether nearly all words have capitals, so that a capital is not a sign of a name."""
    letters = [word for word in row if word[0].isalpha() and not CJK_LETTER.match(word)]
    return len(letters) > MIN_ALIGNED_WORDS and sum(w[0].isupper() for w in letters) > HEADLINE_SHARE * len(letters)


def _exchanged(
    one: Sequence[str], other: Sequence[str], find: Callable[[Sequence[str]], list[tuple[str, str]]]
) -> list[Change]:
    """Pair what only one side has, in order, with what only the other has."""
    mine, theirs = find(one), find(other)
    spare, new = _only(mine, theirs), _only(theirs, mine)
    return [
        Change(before[:MAX_TOKEN_CHARS], after[:MAX_TOKEN_CHARS], label)
        for (before, label), (after, _) in zip(spare, new, strict=False)
        if not _is_part(before, after)
    ]


def _only(mine: Sequence[tuple[str, str]], theirs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    left = Counter(token for token, _ in mine) - Counter(token for token, _ in theirs)
    kept: list[tuple[str, str]] = []
    for token, label in mine:
        if left[token] > 0:
            left[token] -= 1
            kept.append((token, label))
    return kept


def _is_part(before: str, after: str) -> bool:
    """Return whether one name is a shorter form of the other: `Smith` of `Alice Smith`."""
    one, other = set(before.lower().split()), set(after.lower().split())
    return one <= other or other <= one


def _numbers(row: Sequence[str]) -> list[tuple[str, str]]:
    """Return numbers, amounts and currencies, each with the word after it."""
    found: list[tuple[str, str]] = []
    for place, word in enumerate(row):
        if any(map(str.isdigit, word)) or word.lower() in SCALES or word in CURRENCIES:
            following = row[place + 1] if place + 1 < len(row) else ""
            counted = following.isalpha() and following.islower() and len(following) > 1
            found.append((word, following if counted else ""))
    return found


def _cjk_numbers(row: Sequence[str]) -> list[tuple[str, str]]:
    return [(found, "") for found in CJK_NUMBER.findall("".join(row))]


def _cjk_names(one: str, other: str) -> list[Change]:
    """Return changed Chinese names: the characters that differ, with those around them that belong to the name."""
    counts, others = Counter(one), Counter(other)
    if not CJK_LETTER.search(one) or sum(counts[char] * others[char] for char in counts) > MAX_MEETINGS:
        return []
    found: list[Change] = []
    for kind, start, end, other_start, other_end in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind != "replace" or max(end - start, other_end - other_start) > MAX_NAME_CHARS:
            continue
        before, after = _name_around(one, start, end), _name_around(other, other_start, other_end)
        if before and after:
            found.append(Change(before, after))
    return found


def _name_around(text: str, start: int, end: int) -> str:
    """Return the shortest name that contains the characters from `start` to `end`; empty without one."""
    for place in range(start, max(0, start - 3) - 1, -1):
        for stop in range(end, end + 3):
            found = _cjk_name().fullmatch(text, place, min(stop, len(text)))
            if found is not None:
                return found[0]
    return ""
