"""Words as the index has them, and a question as a query: nothing a user types is ever query syntax.

Scripts that are written without spaces are indexed character by character, and asked for in pairs: `数据库` is found
by `数据` and `据库`, whatever stands around it.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from explorer.text.words import CJK, CJK_LETTER

PIECE = re.compile(f"[{CJK}]+|[^\\W_{CJK}]+")
QUOTED = re.compile(r"\"([^\"]{1,300})\"|“([^”]{1,300})”|「([^」]{1,300})」|『([^』]{1,300})』")
MAX_TERMS = 64
STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be been before being between both but by can could did do does doing
    during each find for from get give had has have he her here him his how i if in into is it its know like list me
    more most much my of off on one or other our out over please s she should so some such t tell than that the their
    them then there these they this those through to under until up us was we were what when where which while who whom
    whose why will with would you your
    """.split()  # noqa: SIM905 - a word list reads better as text
)
STOP_CHARACTERS = frozenset("的了吗呢吧们这那么")
STOP_PAIRS = frozenset(
    """
    什么 怎么 怎样 如何 哪些 哪个 哪里 为何 为什 多少 是否 有没 没有 可以 请问 告诉 诉我 关于
    以及 我们 你们 他们 一个 一些
    """.split()  # noqa: SIM905 - the same
)


@dataclass(frozen=True)
class Query:
    """A question as terms, each a few words that stand together in this order."""

    terms: tuple[str, ...]
    phrases: tuple[str, ...] = ()
    """What was quoted."""
    is_exact: bool = False
    """Nothing but quoted phrases was given: they have to be there."""

    @property
    def match(self) -> str:
        """For FTS5: any of the terms, or every phrase."""
        if self.is_exact:
            return " AND ".join(map(_literal, self.phrases))
        return " OR ".join(map(_literal, dict.fromkeys((*self.phrases, *self.terms))))

    @property
    def match_all(self) -> str:
        """For FTS5: every term in one passage."""
        return " AND ".join(map(_literal, dict.fromkeys((*self.phrases, *self.terms))))


def _literal(term: str) -> str:
    return f'"{term}"'


def indexed(text: str) -> str:
    """A text as it goes into the index: one width of letters, and space around characters that need none."""
    return CJK_LETTER.sub(r" \g<0> ", unicodedata.normalize("NFKC", text))


def understood(question: str) -> Query:
    """A question, a few words or quoted phrases as a query; without terms when it holds no word at all."""
    text = unicodedata.normalize("NFKC", question)
    quoted = ["".join(groups) for groups in QUOTED.findall(text)]
    phrases = tuple(dict.fromkeys(phrase for part in quoted if (phrase := phrase_of(part))))
    rest = QUOTED.sub(" ", text)
    terms = tuple(dict.fromkeys(_terms(f"{rest} {' '.join(quoted)}")))[:MAX_TERMS]
    return Query(terms, phrases[:MAX_TERMS], is_exact=bool(phrases) and not PIECE.search(rest))


def phrase_of(text: str) -> str:
    """A text as one term: its words in their order, with a space between characters that have none."""
    return " ".join(" ".join(piece) if CJK_LETTER.match(piece) else piece for piece in PIECE.findall(text))


def _terms(text: str) -> Iterator[str]:
    pieces: list[str] = PIECE.findall(text)
    telling = [term for piece in pieces for term in _terms_of(piece) if not _is_stop_term(term)]
    yield from telling or [term for piece in pieces for term in _terms_of(piece)]


def _terms_of(piece: str) -> list[str]:
    if not CJK_LETTER.match(piece):
        return [piece]
    return [f"{one} {other}" for one, other in pairwise(piece)] or [piece]


def _is_stop_term(term: str) -> bool:
    if not CJK_LETTER.match(term):
        return term.lower() in STOP_WORDS
    return term.replace(" ", "") in STOP_PAIRS or bool(STOP_CHARACTERS & set(term))


def folded(text: str) -> str:
    """Lower case without marks, each character in its place: for finding words in a text, not for showing."""
    return "".join(_fold(character) for character in text)


def _fold(character: str) -> str:
    if character.isascii():
        return character.lower()
    return unicodedata.normalize("NFKD", character)[:1].lower()[:1] or character
