"""Words, sentences and their weight: enough of text statistics to quote well without a language model."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from explorer.text.words import CJK

LATIN_WORD = re.compile(rf"[^\W_{CJK}]+(?:['\u2019-][^\W_{CJK}]+)*")
CJK_RUN = re.compile(f"[{CJK}]+")
SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"”\u2019)\]]*\s+(?=[\"“\u2018(\[]?[A-Z0-9À-Ý])|(?<=[。\uff01\uff1f])[”』」]*(?=[^”』」])"
)
ABBREVIATION = re.compile(
    r"(?:\b(?:Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|vs|etc|No|Fig|e\.g|i\.e|cf|approx|Inc|Ltd|Co|Corp)|\b[A-Z])\.$"
)
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
"""Of a line that was broken at a width; shorter ones are headings or lists."""
MIN_CHARS, MAX_CHARS = 25, 330
MIN_CJK_CHARS, MAX_CJK_CHARS = 12, 160
TOO_ALIKE = 0.5
MIN_STEM_CHARS = 3
LEANS_ON_OTHERS = re.compile(
    r"(?:It|Its|They|Their|This|That|These|Those|He|She|His|Her|But|And|So|Both)\b|[这那它他她但]"
)
"""Beginnings that need the sentence before."""
STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are as at be because been before being
    below between both but by can cannot could did do does doing down during each even few for from
    further get gets had has have having he her here hers him his how i if in into is it its itself
    just let like made make many may me might more most much must my no nor not now of off on once
    one only or other our out over own per please really said same say says she should since so some
    such tell than that the their them then there these they thing things this those through to too
    two under until up upon us use used using very was way we well were what when where which while
    who whom why will with within without would you your yours 的 了 是 在 和 有 我 他 她 它 们 这 那 与 及 或 也 都 就
    吗 呢 吧 什么 哪些 怎么 如何 为什么
    """.split()  # noqa: SIM905 - a word list reads better as text
)


def words_of(text: str) -> list[str]:
    """Content words in lower case; Chinese as pairs of characters."""
    found = [word.lower().replace("\u2019", "'") for word in LATIN_WORD.findall(text)]
    for run in CJK_RUN.findall(text):
        found += [run[index : index + 2] for index in range(max(1, len(run) - 1))]
    return [stem(word) for word in found if word not in STOP_WORDS]


def stem(word: str) -> str:
    """A word without the commonest English endings, so that `databases` meets `database`."""
    for ending, kept in (("ies", "y"), ("'s", ""), ("sses", "ss"), ("s", "")):
        if (
            word.endswith(ending)
            and len(word) - len(ending) >= MIN_STEM_CHARS
            and not word.endswith(("ss", "us", "is"))
        ):
            return word[: -len(ending)] + kept
    return word


def sentences_of(text: str) -> list[str]:
    """The sentences of a text in plain prose or markdown, each verbatim; headings, code and tables are left out."""
    found: list[str] = []
    is_code = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("```"):
            is_code = not is_code
        elif stripped and not is_code and not stripped.startswith(("#", "|", "![", "<", "---")):
            found += _split(re.sub(r"^(?:[-*+>]|\d+\.)\s+", "", stripped))
    return found


def _split(paragraph: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for match in SENTENCE_END.finditer(paragraph):
        part = paragraph[start : match.end()].strip()
        if part and not ABBREVIATION.search(part):
            parts.append(part)
            start = match.end()
    rest = paragraph[start:].strip()
    return [*parts, rest] if rest else parts


def is_quotable(sentence: str) -> bool:
    """Whether a sentence can stand alone as a quotation."""
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
    """A sentence, where it stood, and its weight."""

    text: str
    place: int
    score: float


def names_in(text: str) -> list[str]:
    """Words written with a capital inside a sentence, and numbers: what one passage may hand on to another."""
    return [word for word in LATIN_WORD.findall(text) if word[0].isupper() or word.isdigit()]


def unwrapped(text: str) -> str:
    """A text whose lines were broken at a width, with its paragraphs on one line each; headings and lists stay."""
    lines: list[str] = []
    for line in text.splitlines():
        if lines and _goes_on(lines[-1], line):
            gap = "" if CJK_RUN.match(lines[-1][-1]) and CJK_RUN.match(line.strip()[0]) else " "
            lines[-1] = f"{lines[-1].rstrip()}{gap}{line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def _goes_on(line: str, following: str) -> bool:
    """Whether a line was broken in the middle of a sentence."""
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
    """The sentences that say most about a text, in its own order.

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
    """For an early place and a figure; against questions and beginnings that lean on the sentence before."""
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
    """How much of the smaller set is in the other, from 0 to 1."""
    return len(one & other) / max(1, min(len(one), len(other)))


def rank_by_query(candidates: Sequence[str], query: Iterable[str]) -> list[tuple[float, int]]:
    """Score and index of the candidates that share words with a query, best first (BM25, k1 = 1.2, b = 0.75)."""
    bags = [Counter(words_of(candidate)) for candidate in candidates]
    wanted = set(query)
    holding = Counter(word for bag in bags for word in wanted & bag.keys())
    average = sum(bag.total() for bag in bags) / max(1, len(bags)) or 1.0
    ranked: list[tuple[float, int]] = []
    for index, bag in enumerate(bags):
        score = sum(
            math.log(1 + (len(bags) - holding[word] + 0.5) / (holding[word] + 0.5))
            * (bag[word] * 2.2 / (bag[word] + 1.2 * (0.25 + 0.75 * bag.total() / average)))
            for word in wanted & bag.keys()
        )
        if score > 0:
            ranked.append((score, index))
    return sorted(ranked, key=lambda pair: (-pair[0], pair[1]))


def opening(text: str, max_chars: int) -> str:
    """The first quotable sentences of a text, as one verbatim piece of one paragraph; empty when there is none."""
    for line in text.splitlines():
        sentences = _split(line.strip())
        while sentences and not is_quotable(sentences[0]):
            sentences.pop(0)
        if not sentences:
            continue
        piece = sentences[0]
        for following in sentences[1:]:
            longer = line[line.find(piece) :]
            end = longer.find(following, len(piece)) + len(following)
            if end > max_chars or CITATION_MARK.search(following) or "http" in following:
                break
            piece = longer[:end]
        return piece
    return ""
