"""Which texts fit a query best."""

import re
from pathlib import Path

import pytest

from explorer.text.ranking import B, bm25, rank_by_query, rarity
from explorer.text.words import words_of

SOURCES = Path(__file__).parents[2] / "src/explorer"
OWN_RANKING = re.compile(r"\+ 0\.5\) ?/|bm25\w*\(|math\.log\(1 \+")


def test_the_formula_is_bm25() -> None:
    """One word, once, in a text of usual length weighs its rarity; repetition adds less and less, length takes away."""
    weights = {"ice": rarity(10, 1)}
    assert bm25({"ice": 1}, weights, 1.0) == pytest.approx(weights["ice"])
    once, twice, often = (bm25({"ice": count}, weights, 1.0) for count in (1, 2, 100))
    assert once < twice < often < 2.2 * once
    assert twice - once < once
    assert bm25({"ice": 1}, weights, 2.0) < once < bm25({"ice": 1}, weights, 0.5)
    assert 0 < B < 1
    assert rarity(10, 1) > rarity(10, 5) > rarity(10, 10) > 0


def test_rare_words_weigh_more_than_common_ones() -> None:
    """What has none of the words is not among the results, and equals keep their order."""
    texts = ["the bridge is long", "the bridge was opened in 1967", "the bridge is long", "nothing"]
    assert [index for _, index in rank_by_query(texts, words_of("When was the bridge opened?"))] == [1, 0, 2]
    assert rank_by_query([], ["bridge"]) == rank_by_query(texts, []) == []


def test_there_is_one_ranking() -> None:
    """Three had other constants; the database's own ranking has the same ones."""
    own = {
        path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py") if OWN_RANKING.search(path.read_text())
    }
    assert own == {"text/ranking.py", "reports/earlier.py", "documents/corpus/database.py"}
