"""Sentences and their weight: enough of text statistics to quote well without a language model."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from explorer.text.ranking import rank_by_query, rarity
from explorer.text.words import CJK, is_stop_word, sentences, words_of

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
CODE = re.compile(r"\w_\w|\s\.\w|[{}=\\|│]|\[[A-Z0-9-]+\]|--\w|;$")
"""What prose of an article does not have."""
TERMINAL = re.compile(r"[.!?。\uff01\uff1f][\"”\u2019)』」]*$")
STANDS_ALONE = re.compile(r"\s*(?:#|\||```|<|---|!\[|\[page )")
ITEM = re.compile(r"^\s*(?:[-*+>]|\d+[.)])\s+")
LABEL = re.compile(r"^\*\*[^*]{1,60}\*\*:?\s+")
ROW_RULE = re.compile(r"\|?[\s:|-]+")
MIN_WRAPPED_CHARS = 40
"""Length of a line that was broken at a width; shorter ones are headings or lists."""
MIN_PROSE_CHARS, MIN_CJK_PROSE_CHARS = 100, 40
"""Length of a paragraph of an article; shorter ones are menus, headings and captions."""
MIN_CHARS, MAX_CHARS = 25, 330
MIN_CJK_CHARS, MAX_CJK_CHARS = 12, 160
QUESTION = ("?", "\uff1f")
OPEN_ENDS = (*QUESTION, ":", "\uff1a")
TOO_ALIKE = 0.5
MIN_DIGITS = 3
"""A number with more digits can be a name."""
YEAR = re.compile("1[5-9][0-9][0-9]|20[0-9][0-9]")
"""What many passages share that have nothing else in common."""
BEGINNING = 16
"""The quotable sentences of an article that are considered: an article says at its beginning what it is about."""
LEANS_ON_OTHERS = re.compile(
    r"(?:It|Its|They|Their|This|That|These|Those|He|She|His|Her|But|And|So|Both)\b|[这那它他她但]"
)
"""Beginnings that need the sentence before."""
CONTINUES = re.compile(r"(?:But|And|So|Or|Also|Then)\b|[但而]")
"""Beginnings that continue the sentence before."""
MIN_COVERED = 0.15
"""The least share of a question's words, by their rarity, that a passage must have."""
NEAR_BEST = 0.35
"""The least share of what the best passage has."""
MIN_SHARED = 2
"""The least number of a question's words that a passage must have, if the question has more."""


def sentences_of(text: str) -> list[str]:
    """Return the sentences of plain prose or markdown, each verbatim; headings, code and tables are left out."""
    return [sentence for line in _lines(text) if not line.startswith("|") for sentence in sentences(_bare(line))]


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that hold words of the text."""
    is_code = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("```"):
            is_code = not is_code
        elif line and not is_code and not line.startswith(("#", "![", "<", "---")):
            yield line


def _bare(line: str) -> str:
    return LABEL.sub("", ITEM.sub("", line, count=1), count=1)


def notes_of(text: str) -> list[str]:
    """Return the sentences of the user's own text; a list's item and a table's row are ones, too."""
    found: list[str] = []
    for line in _lines(text):
        if not line.startswith("|"):
            found += sentences(_bare(line))
        elif ROW_RULE.fullmatch(line):
            found = found[:-1]
        else:
            found.append(line.strip("| "))
    return found


def row_heads(text: str) -> dict[str, str]:
    """Return the rows of the tables of a text, each with the head of its columns: what a row's cells are."""
    heads: dict[str, str] = {}
    head, before = "", ""
    for line in _lines(text):
        if not line.startswith("|"):
            head = before = ""
        elif ROW_RULE.fullmatch(line):
            head = before
        else:
            before = line.strip("| ")
            heads |= {before: head} if head else {}
    return heads


def _is_cjk(text: str) -> bool:
    return sum(map(len, CJK_RUN.findall(text))) * 2 > len(text)


def is_quotable(sentence: str, *, is_note: bool = False) -> bool:
    """Return whether a sentence can stand alone as a quotation; a note of the user's needs no full stop."""
    is_cjk = _is_cjk(sentence)
    low, high = (MIN_CJK_CHARS, MAX_CJK_CHARS) if is_cjk else (MIN_CHARS, MAX_CHARS)
    if CITATION_MARK.search(sentence) or "](" in sentence or sentence.endswith(OPEN_ENDS):
        return False
    if is_note:
        return low // 2 <= len(sentence) <= 2 * high
    if not low <= len(sentence) <= high or not TERMINAL.search(sentence):
        return False
    letters = sum(character.isalpha() or character.isspace() for character in sentence)
    begins = sentence[0].isalnum() or sentence[0] in "\"'“\u2018(「$€£"
    is_prose = letters * 10 >= len(sentence) * 7 and begins and not sentence[0].islower()
    return is_prose and "http" not in sentence and not BOILERPLATE.search(sentence)


def names_in(text: str) -> list[str]:
    """Return words with a capital and long numbers but no years: what one passage may hand on to another."""
    found = [
        word for word in LATIN_WORD.findall(text) if word[0].isupper() or (word.isdigit() and len(word) > MIN_DIGITS)
    ]
    return [word for word in found if not is_stop_word(word) and not YEAR.fullmatch(word)]


def unwrapped(text: str) -> str:
    """Join the lines of each paragraph that were broken at a width; headings and lists stay."""
    paragraphs: list[list[str]] = []
    for line in text.splitlines():
        if paragraphs and _continues(paragraphs[-1], line):
            parts, bare = paragraphs[-1], line.strip()
            gap = "" if CJK_RUN.match(parts[-1][-1]) and CJK_RUN.match(bare[0]) else " "
            parts[-1:] = [parts[-1].rstrip(), gap + bare]
        else:
            paragraphs.append([line])
    return "\n".join(map("".join, paragraphs))


def _continues(parts: Sequence[str], following: str) -> bool:
    """Return whether the last of the lines of a paragraph was broken in the middle of a sentence."""
    first, last = parts[0], parts[-1]
    # What has more than one line was wide enough for the second.
    is_wide = len(parts) > 1 or len(first) >= (MIN_WRAPPED_CHARS // 2 if CJK_RUN.search(first) else MIN_WRAPPED_CHARS)
    return (
        is_wide
        and bool(following.strip())
        and not TERMINAL.search(last.rstrip())
        and not STANDS_ALONE.match(first)
        and not STANDS_ALONE.match(following)
        and not ITEM.match(following)
    )


def best_sentences(text: str, title: str, count: int) -> list[str]:
    """Return the sentences of an article's beginning that say most about it, in its own order.

    Only paragraphs count, so that no menu and no heading is quoted. A sentence weighs by the words it shares with the
    rest, by the words of the title, by numbers, and by an early place; one that repeats a chosen one is passed over.
    """
    found = [one for line in _lines(text) if _is_paragraph(line) for one in sentences_of(line)]
    found = [one for one in found if is_quotable(one) and not (CODE.search(one) or CONTINUES.match(one))]
    chosen = list(dict.fromkeys(found))[:BEGINNING]
    bags = [set(words_of(sentence)) for sentence in chosen]
    spread = Counter(word for bag in bags for word in bag)
    of_title = set(words_of(title))
    scores = [
        _weight(bag, spread, of_title) + _form_bonus(sentence, place)
        for place, (sentence, bag) in enumerate(zip(chosen, bags, strict=True))
    ]
    return [chosen[place] for place in sorted(_different(scores, bags, count))]


def _is_paragraph(line: str) -> bool:
    """Return whether a line is prose, and not a heading, a menu's entry or a list's question."""
    return len(line) >= (MIN_CJK_PROSE_CHARS if _is_cjk(line) else MIN_PROSE_CHARS) and not line.endswith(QUESTION)


def _weight(bag: set[str], spread: Counter[str], of_title: set[str]) -> float:
    shared = sum(math.log1p(spread[word] - 1) for word in bag)
    named = 1.2 * len(bag & of_title)
    return (shared + named) / math.sqrt(8 + len(bag))


def _form_bonus(sentence: str, place: int) -> float:
    """Score an early place and a figure up, and beginnings that need the sentence before down."""
    figures = len(re.findall(r"\d[\d.,]*", sentence))
    figure = 0.2 + 0.12 * min(figures, 4) if figures else 0.0
    return 1.0 / (1 + place / 3) + figure - (0.4 if LEANS_ON_OTHERS.match(sentence) else 0.0)


def _different(scores: Sequence[float], bags: Sequence[set[str]], count: int) -> list[int]:
    """Return the places of the best sentences that do not repeat each other."""
    chosen: list[int] = []
    for place in sorted(range(len(scores)), key=lambda place: (-scores[place], place)):
        if len(chosen) < count and all(overlap(bags[place], bags[other]) < TOO_ALIKE for other in chosen):
            chosen.append(place)
    return chosen


def overlap(one: set[str], other: set[str]) -> float:
    """Return how much of the smaller set is in the other, from 0 to 1."""
    return len(one & other) / max(1, min(len(one), len(other)))


def opening(text: str, max_chars: int) -> str:
    """Return the first quotable sentences of a text, a verbatim piece of one paragraph; empty when there is none."""
    for line in text.splitlines():
        pieces = sentences(line.strip())
        while pieces and (not is_quotable(pieces[0]) or CONTINUES.match(pieces[0])):
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


@dataclass(frozen=True)
class Candidate:
    """A text that may be about a question, below its heading."""

    heading: str
    text: str

    @property
    def whole(self) -> str:
        """Both."""
        return f"{self.heading}. {self.text}"


def covered(candidates: Sequence[Candidate], question: Iterable[str]) -> list[float]:
    """Return how much of a question each candidate has, from 0 to 1; rare words count more, and one alone is nothing.

    How rare a word is depends on the texts alone: all passages of a file may have the same heading.
    """
    wanted = set(question)
    bags = [wanted & set(words_of(one.whole)) for one in candidates]
    holders = Counter(word for one in candidates for word in wanted & set(words_of(one.text)))
    # In a small collection, words that nothing has would outweigh all others.
    weights = {word: rarity(len(candidates), max(1, holders[word])) for word in wanted}
    whole, least = sum(weights.values()) or 1.0, min(MIN_SHARED, len(wanted))
    return [sum(weights[word] for word in bag) / whole if len(bag) >= least else 0.0 for bag in bags]


def relevant(candidates: Sequence[Candidate], question: Sequence[str]) -> list[int]:
    """Return the indexes of the candidates that are about a question, best first: one common word is no relevance."""
    shares = covered(candidates, question)
    least = max(MIN_COVERED, NEAR_BEST * max(shares, default=0.0))
    ranked = rank_by_query([one.whole for one in candidates], question)
    own = [len(set(question) & set(words_of(one.text))) for one in candidates]
    chosen = [index for _, index in ranked if shares[index] >= least]
    return sorted(chosen, key=lambda index: (-round(shares[index], 1), -own[index]))
