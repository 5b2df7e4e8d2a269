"""Questions become queries that are never syntax."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.documents.corpus.passages import folded, indexed, understood
from thoroughness import examples


@pytest.fixture(scope="module")
def table() -> Iterator[sqlite3.Connection]:
    """A table as the index has it."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute(
        "CREATE VIRTUAL TABLE words USING fts5 (title, name, text, tokenize = 'porter unicode61 remove_diacritics 2')"
    )
    yield connection
    connection.close()


HOSTILE = (
    'a" OR "b',
    "title : x AND NOT y",
    "NEAR(a b, 2) *",
    '"unclosed',
    "a* ^b -c +d {e f} : (g",
    "'; DROP TABLE words; --",
    '""" "" "',
    "-title:secret",
    "\x00null",
)


@pytest.mark.parametrize("question", HOSTILE)
def test_syntax_in_a_question_is_words(question: str, table: sqlite3.Connection) -> None:
    """Operators, columns and quotes of the query language are looked for like any other words."""
    query = understood(question)
    for match in (query.match, query.match_all):
        if match:
            table.execute("SELECT count(*) FROM words WHERE words MATCH ?", (match,)).fetchall()


def test_unguarded_these_questions_break(table: sqlite3.Connection) -> None:
    """Handed over as they are, most of the same questions fail: the guard is what makes them safe."""
    failed = 0
    for question in HOSTILE:
        try:
            table.execute("SELECT count(*) FROM words WHERE words MATCH ?", (question,)).fetchall()
        except sqlite3.OperationalError:
            failed += 1
    assert failed > len(HOSTILE) / 2


@settings(max_examples=examples(150), deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_a_query(question: str) -> None:
    """Whatever is typed, the query runs, or there is no word in it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")
        query = understood(question)
        if query.terms:
            connection.execute("SELECT * FROM words WHERE words MATCH ?", (query.match,)).fetchall()
            connection.execute("SELECT * FROM words WHERE words MATCH ?", (query.match_all,)).fetchall()


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What do the ropes cost?", ("ropes", "cost")),
        ("who is who", ("who", "is")),
        ("数据库的维护成本是多少", ("数 据", "据 库", "维 护", "护 成", "成 本", "本 是", "是 多")),
        ("猫", ("猫",)),
        ("Postgres 的备份", ("Postgres", "备 份")),
        ("\uff21\uff22\uff23\uff11\uff12\uff13", ("ABC123",)),
        ("???", ()),
    ],
)
def test_telling_words(question: str, terms: tuple[str, ...]) -> None:
    """Words that say nothing are dropped in English and Chinese, unless there are no others."""
    assert understood(question).terms == terms


def test_quoted_words_stand_together() -> None:
    """A quoted phrase is kept as one; alone, it has to be there as it stands."""
    mixed = understood('Who wrote "The Paper Lighthouse"?')
    assert mixed.phrases == ("The Paper Lighthouse",)
    assert not mixed.is_exact
    alone = understood("“维护成本”")
    assert alone.is_exact
    assert alone.match == '"维 护 成 本"'


def test_characters_keep_their_places_when_folded() -> None:
    """Folding for a search in a text never moves an offset."""
    text = "Ärger im Café 数据库 İstanbul ﬁn ½"
    assert len(folded(text)) == len(text)
    assert folded("Café") == "cafe"
    assert indexed("数据库") == " 数  据  库 "
