"""The words of a text that say what it is about, each as what its forms have in common."""

import re
from typing import NamedTuple

from explorer.text.words import HAN, HIRAGANA, KATAKANA, STOP_WORDS

TERM = re.compile(
    rf"(?P<cjk>[{HAN}{KATAKANA}]+)|(?P<number>\d+[号期版代季届號]线?|\d[\d.,]*(?:(?:st|nd|rd|th)\b)?)|(?P<word>[^\W\d_{HIRAGANA}{HAN}{KATAKANA}]+(?:\d+|(?:['-][^\W\d_]+)*))"
)
_MORE_STOPS = (
    "der die das den dem des ein eine einen einem einer eines und oder aber in im am an auf aus bei mit nach von vom zu"
    " zum zur für als wie ist sind war waren wird werden wurde wurden hat haben hatte es er sie nur noch auch sich"
    " rund etwa bis ende anfang mitte seit laut"
    " le la les un une des du de et ou mais dans en au aux sur par pour avec est sont a été ont qui que ce"
    " cette il elle se sa son ses leur plus environ mr mrs ms dr prof said says say told according would will may"
    " year years percent prozent million billion millionen thousand number total still also however"
)
STOPS = STOP_WORDS | frozenset(_MORE_STOPS.split())
KEY_CHARS = 6
ENDING = re.compile(r"(?:'s|s'|es|ed|s|d|e|'|en)$")
SHORT_CHARS = 3
DIMENSIONS = {
    "wide": "width", "deep": "depth", "tall": "height", "thick": "thickn", "weight": "weigh",
    "breit": "breite", "hoch": "höhe", "tief": "tiefe", "cost": "price", "costs": "price", "priced": "price",
}  # fmt: skip
"""Words of sentences, and the labels of tables that say the same."""


def key(word: str) -> str:
    """Return what the forms of a word have in common, roughly: its first letters."""
    small = word.casefold().removesuffix("'s")
    if small in DIMENSIONS:
        return DIMENSIONS[small]
    short = (ENDING.sub("", small) or small)[:KEY_CHARS]
    return f"{short[:-1]}i" if len(short) > SHORT_CHARS and short.endswith("y") else short


INNER_CAPITAL = re.compile(r"[a-z]{1,2}[A-Z][a-z]\w")
"""iPhone, eBay; not mAh."""


class TermSet(NamedTuple):
    """The words of a stretch of text that say what it is about."""

    words: frozenset[str]
    names: frozenset[str]
    """Those of them that are written with a capital letter within a sentence."""


CJK_STOP = re.compile("已经|没有|尚未|[的了也已尚未不没]")
"""What says nothing of what a text is about, between the characters that do."""
LABELS = "号期版代季届號"
LINE = "线"
"""A line of a metro, behind its number."""


def terms_of(text: str, start: int = 0, end: int | None = None, *, without: tuple[int, int] = (-1, -1)) -> TermSet:
    """Return the terms between two places of a text, but for a figure's own."""
    stop = len(text) if end is None else end
    pieces = (
        [(start, min(without[0], stop)), (max(without[1], start), stop)] if start <= without[0] else [(start, stop)]
    )
    all_words: set[str] = set()
    names: set[str] = set()
    for found in (one for piece in pieces for one in TERM.finditer(text, *piece)):
        word = found[0]
        if found["cjk"]:
            pieces_of_word = filter(None, CJK_STOP.split(word))
            all_words.update(one[place : place + 2] for one in pieces_of_word for place in range(max(1, len(one) - 1)))
        elif found["number"]:
            all_words.add(word.rstrip(".,stndrh"))
            if word[-1] in LABELS + LINE:
                names.add(word)
        elif short := term_key(word):
            all_words.add(short)
            if word[0].isupper() or INNER_CAPITAL.match(word):
                names.add(short)
    return TermSet(frozenset(all_words), frozenset(names))


def term_key(word: str) -> str:
    """Return the key of a word; empty for one that says nothing."""
    return "" if word.lower() in STOPS or (len(word) == 1 and not word.isupper()) else key(word)
