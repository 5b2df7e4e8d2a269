"""Ranks texts by a query with Okapi BM25 (Robertson and Zaragoza 2009).

An indexed folder is ranked by SQLite's FTS5, which has the same formula and constants.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from explorer.text.words import words_of

Word = TypeVar("Word", bound=Hashable)
K1, B = 1.2, 0.75
"""How soon repetition stops to count, and how much a text's length counts."""


def rarity(texts: int, holders: int) -> float:
    """Return the weight of a word that `holders` of the `texts` have; rarer words weigh more."""
    return math.log(1 + (texts - holders + 0.5) / (holders + 0.5))


def bm25(counts: Mapping[Word, int], weights: Mapping[Word, float], length: float) -> float:
    """Score one text.

    Args:
        counts: How often the text has each word of the query.
        weights: The rarities of the words.
        length: The number of its words, divided by the mean of all texts.
    """
    return sum(weights[word] * count * (K1 + 1) / (count + K1 * (1 - B + B * length)) for word, count in counts.items())


def rank_by_query(texts: Sequence[str], query: Iterable[str]) -> list[tuple[float, int]]:
    """Rank texts by the words of a query that they have, as `words_of` gives them.

    Returns:
        Score and index of the texts that have any, best first.
    """
    bags = [Counter(words_of(text)) for text in texts]
    wanted = set(query)
    holders = Counter(word for bag in bags for word in wanted & bag.keys())
    weights = {word: rarity(len(bags), count) for word, count in holders.items()}
    usual = sum(bag.total() for bag in bags) / max(1, len(bags)) or 1.0
    scores = [
        bm25({word: bag[word] for word in sorted(wanted & bag.keys())}, weights, bag.total() / usual) for bag in bags
    ]
    return sorted(
        ((score, index) for index, score in enumerate(scores) if score > 0), key=lambda one: (-one[0], one[1])
    )
