"""Words, sentences and their weight: enough of text statistics to quote well without a language model."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.text.words import CJK, sentences, words_of

LATIN_WORD = re.compile(rf"[^\W_{CJK}]+(?:['\u2019-][^\W_{CJK}]+)*")
CJK_RUN = re.compile(f"[{CJK}]+")
BOILERPLATE = re.compile(
    r"\bcookies?\b|subscri(?:be|ption)|sign (?:up|in)\b|log ?in\b|newsletter|privacy policy|terms of (?:use|service)"
    r"|all rights reserved|©|advertis|enable javascript|share this|read more|click here|follow us|related articles"
    r"|skip to (?:main )?content|table of contents|posted (?:by|on)\b|min read\b|订阅|登录|版权所有|阅读更多|隐私政策",
    re.IGNORECASE,
)
CITATION_MARK = re.compile(r"\[\s*S\d+|<<|>>")
"""Outside text that looks like a mark of ours is never quoted."""
TERMINAL = re.compile(r"[.!?。\uff01\uff1f][\"”\u2019)』」]*$")
STANDS_ALONE = re.compile(r"\s*(?:#|\||```|<|---|!\[|\[page )")
BEGINS_ITEM = re.compile(r"\s*(?:[-*+>]|\d+[.)])\s")
MIN_WRAPPED_CHARS = 40
"""Length of a line that was broken at a width; shorter ones are headings or lists."""
MIN_CHARS, MAX_CHARS = 25, 330
MIN_CJK_CHARS, MAX_CJK_CHARS = 12, 160
TOO_ALIKE = 0.5
LEANS_ON_OTHERS = re.compile(
    r"(?:It|Its|They|Their|This|That|These|Those|He|She|His|Her|But|And|So|Both)\b|[这那它他她但]"
)
"""Beginnings that need the sentence before."""


def sentences_of(text: str) -> list[str]:
    """Return the sentences of plain prose or markdown, each verbatim; headings, code and tables are left out."""
    found: list[str] = []
    is_code = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("```"):
            is_code = not is_code
        elif stripped and not is_code and not stripped.startswith(("#", "|", "![", "<", "---")):
            found += sentences(re.sub(r"^(?:[-*+>]|\d+\.)\s+", "", stripped))
    return found


def is_quotable(sentence: str) -> bool:
    """Return whether a sentence can stand alone as a quotation."""
    is_cjk = len(CJK_RUN.findall(sentence)) > 0 and sum(map(len, CJK_RUN.findall(sentence))) * 2 > len(sentence)
    low, high = (MIN_CJK_CHARS, MAX_CJK_CHARS) if is_cjk else (MIN_CHARS, MAX_CHARS)
    if not low <= len(sentence) <= high or not TERMINAL.search(sentence):
        return False
    if CITATION_MARK.search(sentence) or "](" in sentence or "http" in sentence or BOILERPLATE.search(sentence):
        return False
    letters = sum(character.isalpha() or character.isspace() for character in sentence)
    return letters * 10 >= len(sentence) * 7 and not sentence[0].islower()


@dataclass(frozen=True)
class Scored:
    """A sentence with its place and its score."""

    text: str
    place: int
    score: float


def names_in(text: str) -> list[str]:
    """Return words written with a capital inside a sentence, and numbers: what one passage may hand on to another."""
    return [word for word in LATIN_WORD.findall(text) if word[0].isupper() or word.isdigit()]


def unwrapped(text: str) -> str:
    """Join the lines of each paragraph that were broken at a width; headings and lists stay."""
    lines: list[str] = []
    for line in text.splitlines():
        if lines and _goes_on(lines[-1], line):
            gap = "" if CJK_RUN.match(lines[-1][-1]) and CJK_RUN.match(line.strip()[0]) else " "
            lines[-1] = f"{lines[-1].rstrip()}{gap}{line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def _goes_on(line: str, following: str) -> bool:
    """Return whether a line was broken in the middle of a sentence."""
    wide = MIN_WRAPPED_CHARS // 2 if CJK_RUN.search(line) else MIN_WRAPPED_CHARS
    return (
        len(line) >= wide
        and bool(following.strip())
        and not TERMINAL.search(line.rstrip())
        and not STANDS_ALONE.match(line)
        and not STANDS_ALONE.match(following)
        and not BEGINS_ITEM.match(following)
    )


def best_sentences(text: str, title: str, count: int) -> list[str]:
    """Return the sentences that say most about a text, in its own order.

    A sentence weighs by the words it shares with the rest (words that recur), by the words of the title, by numbers,
    and by an early place; one that repeats what is chosen already is passed over.
    """
    sentences = list(dict.fromkeys(sentence for sentence in sentences_of(text) if is_quotable(sentence)))
    bags = [set(words_of(sentence)) for sentence in sentences]
    spread = Counter(word for bag in bags for word in bag)
    of_title = set(words_of(title))
    scored = [
        Scored(sentence, place, _weight(bag, spread, of_title) + _form_bonus(sentence, place))
        for place, (sentence, bag) in enumerate(zip(sentences, bags, strict=True))
    ]
    return [one.text for one in sorted(_different(scored, bags, count), key=lambda one: one.place)]


def _weight(bag: set[str], spread: Counter[str], of_title: set[str]) -> float:
    shared = sum(math.log1p(spread[word] - 1) for word in bag)
    named = 1.2 * len(bag & of_title)
    return (shared + named) / math.sqrt(8 + len(bag))


def _form_bonus(sentence: str, place: int) -> float:
    """Score an early place and a figure up; questions and beginnings that need the sentence before, down."""
    figures = len(re.findall(r"\d[\d.,]*", sentence))
    figure = 0.2 + 0.12 * min(figures, 4) if figures else 0.0
    leaning = 0.35 if LEANS_ON_OTHERS.match(sentence) else 0.0
    asking = 1.0 if sentence.endswith(("?", "\uff1f")) else 0.0
    return 0.4 / (1 + place) + figure - leaning - asking


def _different(scored: Sequence[Scored], bags: Sequence[set[str]], count: int) -> list[Scored]:
    chosen: list[Scored] = []
    for one in sorted(scored, key=lambda one: (-one.score, one.place)):
        if len(chosen) == count:
            break
        if all(overlap(bags[one.place], bags[other.place]) < TOO_ALIKE for other in chosen):
            chosen.append(one)
    return chosen


def overlap(one: set[str], other: set[str]) -> float:
    """Return how much of the smaller set is in the other, from 0 to 1."""
    return len(one & other) / max(1, min(len(one), len(other)))


def opening(text: str, max_chars: int) -> str:
    """Return the first quotable sentences of a text, a verbatim piece of one paragraph; empty when there is none."""
    for line in text.splitlines():
        pieces = sentences(line.strip())
        while pieces and not is_quotable(pieces[0]):
            pieces.pop(0)
        if not pieces:
            continue
        piece = pieces[0]
        for following in pieces[1:]:
            longer = line[line.find(piece) :]
            end = longer.find(following, len(piece)) + len(following)
            if end > max_chars or CITATION_MARK.search(following) or "http" in following:
                break
            piece = longer[:end]
        return piece
    return ""
