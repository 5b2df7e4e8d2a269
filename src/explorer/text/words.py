"""The words, sentences and language of a text, in scripts with spaces between words and without.

A full stop ends no sentence after an abbreviation or an initial, in a number or an address, or before a small letter.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HIRAGANA = "\u3040-\u309f"
KATAKANA = "\u30a0-\u30ff"
KANA = HIRAGANA + KATAKANA
HANGUL = "\uac00-\ud7af"
THAI = "\u0e00-\u0e7f"
CJK = KANA + HAN + HANGUL
"""Chinese, Japanese and Korean letters, as the inside of a regular expression's `[...]`."""
UNSPACED = KANA + HAN + THAI
"""Scripts without spaces between words. Each letter counts as a word, which is an upper estimate."""
CJK_LETTER = re.compile(f"[{CJK}]")
CJK_SHARE = 0.3
HAN_LETTER = re.compile(f"[{HAN}]")
LETTER = re.compile(r"[^\W\d_]")
STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are as at be because been before being below
    between both but by can cannot could did do does doing down during each even few find for from further get
    gets give had has have having he her here hers him his how i if in into is it its itself just know let like
    list made make many may me might more most much must my no nor not now of off on once one only or other our
    out over own per please really s said same say says she should since so some such t tell than that the their
    them then there these they thing things this those through to too two under until up upon us use used using
    very was way we well were what when where which while who whom whose why will with within without would you
    your yours
    """.split()  # noqa: SIM905 - a word list reads better as text
)
"""English words that do not show what a text is about."""
STOP_CHARACTERS = frozenset("的了吗呢吧们这那么")
"""Characters that make a pair of characters a stop word."""
STOP_PAIRS = frozenset(
    """
    什么 哪些 怎么 如何 怎样 哪个 哪里 为何 为什 多少 是否 有没 没有 可以 请问 告诉 诉我 关于 以及
    我们 你们 他们 一个 一些
    """.split()  # noqa: SIM905 - the same
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""The names of the days of a week, in the order in which `date.weekday()` counts them."""
STRETCH_CHARS = 50_000
MIN_STEM_CHARS = 3
ENDINGS = (("ies", "y"), ("'s", ""), ("sses", "ss"), ("s", ""))
"""The commonest endings of English words, and what replaces them."""


def stretches(text: str) -> Iterator[tuple[int, int]]:
    """Yield where stretches of whole lines begin and end, for a pattern that reaches over no end of a line.

    No other thread is served while a pattern is looked for.
    """
    start = 0
    while start < len(text):
        end = text.find("\n", start + STRETCH_CHARS) + 1 or len(text)
        yield start, end
        start = end


# Patterns of large scripts take milliseconds to compile: those that a start does not need are made when they are used.
@cache
def _word() -> "re.Pattern[str]":
    return re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+(?:['\u2019.,:-][^\W_{UNSPACED}]+)*")


@cache
def _term() -> "re.Pattern[str]":
    return re.compile(rf"[{CJK}]+|[^\W_{CJK}]+(?:['\u2019][^\W_{CJK}]+)*")


def count_words(text: str) -> int:
    """Count words; a letter of a script without spaces is one, and a punctuation mark alone is not."""
    return sum(1 for _ in _word().finditer(text))


def is_mostly_cjk(text: str) -> bool:
    """Return whether more than three in ten letters are Chinese, Japanese or Korean."""
    letters = sum(1 for _ in LETTER.finditer(text))
    return letters > 0 and len(CJK_LETTER.findall(text)) > CJK_SHARE * letters


UNKNOWN = "und"
"""The standard code of a language that was not recognised (ISO 639-2)."""
_COMMONEST = {
    "en": "the of and to is in that was with are have from by at for it on were has a an this but not as be will than",
    "de": "der die das und ist nicht mit von den dem ein eine im auf für sich sagte als um zu des bei aus wird wurde"
    " hat hatte war waren wurden werden sind nach jedes jahr prozent aber nur",
    "fr": "le la les des du et est dans une un en que qui sur par pour au a ont",
    "es": "el los las y es en que una del por con para se su al fue",
}
LANGUAGE_WORDS: Mapping[str, frozenset[str]] = {name: frozenset(words.split()) for name, words in _COMMONEST.items()}
HIRAGANA_LETTER = re.compile(f"[{HIRAGANA}]")
HANGUL_LETTER = re.compile(f"[{HANGUL}]")
READ_CHARS = 2_000
"""The beginning of a text by which its language is recognised."""
LEAST_KANA = 2
LEAST_COMMON = 2
"""Fewest common words from which a language is recognised: `a` alone is French, too."""


def language_of(text: str) -> str:
    """Return the code of a text's language, by what it begins with; empty when that is not plain.

    Known are English, German, French, Spanish, Chinese, Japanese and Korean.
    """
    beginning = text[:READ_CHARS]
    if sum(1 for _ in HIRAGANA_LETTER.finditer(beginning)) >= LEAST_KANA:
        return "ja"
    letters = sum(1 for _ in LETTER.finditer(beginning))
    if len(CJK_LETTER.findall(beginning)) * 3 > letters:
        return "ko" if len(HANGUL_LETTER.findall(beginning)) * 3 > letters else "zh"
    words = re.findall(r"[^\W\d_]+", beginning.lower())
    counts = {name: sum(word in known for word in words) for name, known in LANGUAGE_WORDS.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] >= LEAST_COMMON and sorted(counts.values())[-2] < counts[best] else ""


_GERMAN = (
    "der die das den dem des ein eine einen einem einer und oder ist sind war waren wird wurde wurden werden hat haben"
    " nicht mit von vom zu zum zur auf für über bei nach aus wie was wer wo wann warum welche welcher welches wieviel"
    " viel gibt es ich wir man heute gestern kann können im am sich auch nur"
    " fasse fass zusammen fassen zusammenfassung diese dieser letzte letzten sagt hält denkt"
)
GERMAN_WORDS = frozenset(_GERMAN.split())
_NEIGHBOURS = (
    "the of and is are was what how who when why which for on to did does",
    (
        "de het een en van is was wie wat waar die dat dit er op met voor zijn niet man over om te aan hoe je naar"
        " eerste welke men wordt worden heeft nu ook dan"
    ),
    (
        "og och er var den der det de en ett et i på om med som til till for för af av hvad hva vad hvem vem hvor hur"
        " man har ikke inte dag bliver blir siger säger sier"
    ),
    "o a os as de do da dos das e que em no na uma é são foi por para com qual quais como se mais",
    "il la le lo gli di del della dei e che un una è era per con chi cosa come da sono più qual ne",
    _COMMONEST["fr"],
    _COMMONEST["es"],
)
NEIGHBOURS = tuple(frozenset(words.split()) for words in _NEIGHBOURS)
"""Common words of English, Dutch, Scandinavian languages, Portuguese, Italian, French and Spanish.

Some of them, such as `was`, `die` and `den`, are German, too; those that are German and not among `GERMAN_WORDS`, such
as `in` and `um`, are left out."""
GERMAN_WORD = re.compile(r"[^\W\d_]+")
LEAST_GERMAN = 2


def is_german(text: str) -> bool:
    """Return whether a question is German: two of its commonest words, and more of them than of another language's."""
    words = [word.lower() for word in GERMAN_WORD.findall(text)]
    german = sum(word in GERMAN_WORDS for word in words)
    return german >= LEAST_GERMAN and german > max(sum(word in known for word in words) for known in NEIGHBOURS)


GERMAN_NAME = re.compile(r"de(?:[-_]\w+)?\Z|.*(?:german|deutsch)")


def phrases_in(language: str, text: str) -> str:
    """Return the language of phrases that the engine adds: `zh`, `de` or `en`.

    Args:
        language: The language that the user set, by a name or a code: `zh-CN`, `German`, `中文`; empty: none.
        text: The text that decides where none is set.
    """
    if not language:
        return "de" if phrase_language(text) == "en" and is_german(text) else phrase_language(text)
    name = language.strip().lower()
    if name.startswith("zh") or "chinese" in name or HAN_LETTER.search(name):
        return "zh"
    return "de" if GERMAN_NAME.match(name) else "en"


def phrase_language(text: str) -> str:
    """Return the language of phrases that the engine adds to a text: `zh` if a third of it is Han, else `en`."""
    return "zh" if len(HAN_LETTER.findall(text)) * 3 > sum(1 for _ in LETTER.finditer(text)) else "en"


def is_stop_word(word: str) -> bool:
    """Return whether a word, or a pair of Chinese characters, does not show what a text is about."""
    return word.lower() in STOP_WORDS or word in STOP_PAIRS or not STOP_CHARACTERS.isdisjoint(word)


def words_of(text: str) -> list[str]:
    """Return the words by which a text is searched and compared, with repetitions.

    They are in lower case and singular, without stop words; Chinese, Japanese and Korean are in pairs of characters.
    """
    words = ((word, stem(word)) for word in terms_of(text))
    return [bare for word, bare in words if not is_stop_word(word) and not is_stop_word(bare)]


def terms_of(text: str) -> Iterator[str]:
    """Yield the words of a text, in lower case, and the pairs of characters of scripts without spaces."""
    for found in _term().findall(text.casefold()):
        if CJK_LETTER.match(found):
            yield from ("".join(pair) for pair in pairwise(found)) if len(found) > 1 else (found,)
        else:
            yield found.replace("\u2019", "'")


def stem(word: str) -> str:
    """Return a word without the commonest English endings, so that `databases` meets `database`."""
    if word.endswith(("ss", "us", "is")):
        return word
    for ending, kept in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM_CHARS:
            return word[: -len(ending)] + kept
    return word


END = re.compile(r"[.!?]+|[。！？]+|…+|\.{3}")
CLOSERS = "\"'”\u2019»」』）)]*_`"
OPENERS = " \n*_\"'“\u2018("
NO_END = re.compile(
    r"(?:^|[\s(\[“\"'])(?:e\.g|i\.e|cf|vs|etc|al|approx|ca|no|nos|fig|figs|p|pp|vol|ch|sec|eq|mr|mrs|ms|dr|prof|st|sr|jr"
    r"|inc|ltd|co|corp|gov|sen|rep|gen|dept|est|min|max|avg|u\.s|u\.k|u\.n|e\.u|a\.m|p\.m|ph\.d|d\.c"
    r"|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec|[a-z]|(?:[a-z]\.)+[a-z])$",
    re.IGNORECASE,
)
MAX_ABBREVIATION_CHARS = 12
LOOKED_AHEAD_CHARS = 400


class SentenceEnd(NamedTuple):
    """The end of a sentence, as offsets in its text."""

    mark: int
    """The start of its full stop, question mark or the like."""
    after_mark: int
    end: int
    """The end of the quotation marks and brackets that close with it."""


def sentence_ends(
    text: str, note: "re.Pattern[str] | None" = None, start: int = 0, stop: int | None = None
) -> Iterator[SentenceEnd]:
    """Find where sentences end, in the order of the text.

    Args:
        text: A paragraph or more; a line break within it is a space.
        note: Matches what may be between two sentences and belongs to neither, such as a citation.
        start: The offset to begin at.
        stop: The offset to stop at; later marks are not read.
    """
    for found in END.finditer(text, start, len(text) if stop is None else stop):
        end = found.end()
        while end < len(text) and text[end] in CLOSERS:
            end += 1
        if _is_end(text, found, end, note):
            yield SentenceEnd(found.start(), found.end(), end)


def _is_end(text: str, found: "re.Match[str]", end: int, note: "re.Pattern[str] | None") -> bool:
    if found[0][0] in "。！？":
        return True
    if end < len(text) and not text[end].isspace() and not (note and note.match(text, end)):
        return False
    ahead = text[end : end + LOOKED_AHEAD_CHARS]
    follows = (note.sub("", ahead) if note else ahead).lstrip(OPENERS)[:1]
    if follows.islower() and follows.isascii():
        return False
    before = text[max(0, found.start() - MAX_ABBREVIATION_CHARS) : found.start()]
    return not (found[0] == "." and follows and NO_END.search(before))


def sentences(paragraph: str) -> list[str]:
    """Split a paragraph into its sentences, without the spaces around them."""
    places = [0, *(found.end for found in sentence_ends(paragraph)), len(paragraph)]
    pieces = (paragraph[start:end].strip() for start, end in pairwise(places))
    return [piece for piece in pieces if piece]
