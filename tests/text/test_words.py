"""What counts as a word, in every script."""

import re
from pathlib import Path

import pytest

from explorer.text.words import count_words, is_mostly_cjk, is_stop_word, phrase_language, words_of

SOURCES = Path(__file__).parents[2] / "src/explorer"
OWN_STOP_WORDS = re.compile(r"\ba (?:about above|an the)\b|\ban\?\|and\b|\bthe a an and\b|STOP_(?:WORD|PAIR|CHAR)\w+ =")
RANGE = re.compile(r"\\u(?:3400|4e00|9fff|3040|30ff|ac00)", re.IGNORECASE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Output rose by 12 %.", 4),
        ("it\u2019s 3.5 state-of-the-art", 3),
        ("\u3053\u308c\u306f\u30c6\u30b9\u30c8\u3067\u3059", 8),
        ("\u53d1\u7535\u91cf rose 12%", 5),
        ("\ud55c\uad6d\uc5b4 \ub2e8\uc5b4", 2),
        ("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", 6),
        ("- | --- | *", 0),
        ("", 0),
    ],
)
def test_words_are_counted(text: str, words: int) -> None:
    """By spaces, and letter by letter where a script has none."""
    assert count_words(text) == words


def test_the_engine_adds_chinese_phrases_to_chinese_texts_only() -> None:
    """A foreign name in an English sentence does not change its language, nor does Japanese with little Han."""
    assert phrase_language("\u4e94\u6708\u7684\u53d1\u7535\u91cf\u5982\u4f55\uff1f") == "zh"
    assert phrase_language("What does \u4eba\u5de5\u667a\u80fd mean in this long sentence?") == "en"
    assert phrase_language("\u3053\u308c\u306f\u30c6\u30b9\u30c8\u3067\u3059") == "en"
    assert phrase_language("") == "en"


def test_a_text_is_mostly_cjk_by_its_letters() -> None:
    """Figures and marks do not count."""
    assert is_mostly_cjk("\u4e94\u6708 12345")
    assert not is_mostly_cjk("May 12345 \u6708")
    assert not is_mostly_cjk("123")


def test_the_ranges_of_scripts_are_written_once() -> None:
    """Five different sets of letters once gave one text 1, 7 or 8 words."""
    assert [path.relative_to(SOURCES) for path in SOURCES.rglob("*.py") if RANGE.search(path.read_text())] == [
        Path("text/words.py")
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What is the state of databases?", ["state", "database"]),
        ("Companies\u2019 open-source classes: what\u2019s new", ["company", "open", "source", "class", "new"]),
        ("Bus analysis", ["bus", "analysis"]),
        ("\u6570\u636e\u5e93\u7684\u53d1\u5e03 SQLite", ["\u6570\u636e", "\u636e\u5e93", "\u53d1\u5e03", "sqlite"]),
        ("\u732b", ["\u732b"]),
        ("the who", []),
    ],
)
def test_words_are_searched_in_one_form(text: str, words: list[str]) -> None:
    """Small, singular, without stop words; scripts without spaces in pairs."""
    assert words_of(text) == words


def test_stop_words_are_known_in_any_case() -> None:
    """Of English, and of Chinese by pairs and by characters."""
    assert all(map(is_stop_word, ("The", "whose", "\u4ec0\u4e48", "\u5e93\u7684")))
    assert not any(map(is_stop_word, ("state", "US-made", "\u6570\u636e")))


@pytest.mark.slow
def test_there_is_one_list_of_stop_words() -> None:
    """Three lists made one question three.

    `differences` lists the beginnings of sentences, which have a capital and name nothing, `amounts` the words
    before a number that are no name.
    """
    own = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if OWN_STOP_WORDS.search(path.read_text())
    }
    assert own == {"text/differences.py", "text/words.py", "reports/verify/amounts.py"}
