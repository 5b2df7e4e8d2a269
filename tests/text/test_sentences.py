"""Where sentences end."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.text.words import sentence_ends, sentences

SOURCES = Path(__file__).parents[2] / "src/explorer"
OWN_SPLITTER = re.compile(
    r"\(\?<=\[\.!\?|\[\.!\?[^\]]*\]\+?(?:\||\\s|\(\?=\\s)|\[\^[^\]]*\.!\?[^\]]*\]\*\("
    r"|(?:partition|split)\(\"[.\u3002] \""
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It rose. It fell! Did it? Yes.", ["It rose.", "It fell!", "Did it?", "Yes."]),
        ("Dr. Wrede built it, i.e. a rig. It cost 3.5 m.", ["Dr. Wrede built it, i.e. a rig.", "It cost 3.5 m."]),
        ("J. Smith of the U.S. Navy said so.", ["J. Smith of the U.S. Navy said so."]),
        ("See a.example/x? no. 5 is next.", ["See a.example/x? no. 5 is next."]),
        ("“It is boring.” He left (early.) They stayed.", ["“It is boring.”", "He left (early.)", "They stayed."]),
        ("数据没有丢失。测试用了二十四块板子！好", ["数据没有丢失。", "测试用了二十四块板子！", "好"]),
        ("他说：「走吧。」然后走了。", ["他说：「走吧。」", "然后走了。"]),
        ("No end here", ["No end here"]),
        ("  ", []),
    ],
)  # fmt: skip
def test_sentences_end_where_a_reader_says_so(text: str, found: list[str]) -> None:
    """Not behind abbreviations and initials, not in numbers and addresses; with the marks that close them."""
    assert sentences(text) == found


def test_notes_between_sentences_belong_to_neither() -> None:
    """What the caller names is looked through, so that a citation does not hide the next sentence's small letter."""
    note = re.compile(r"\[\d\]")
    assert [found.end for found in sentence_ends("It rose.[1] It fell.", note)] == [8, 20]
    assert [found.end for found in sentence_ends("It rose.[1] and fell.", note)] == [21]
    assert [found.end for found in sentence_ends("It rose.[1] It fell.")] == [20]


def test_only_a_part_of_a_text_is_looked_at() -> None:
    """A long text is cut piece by piece without a look at all that follows."""
    text = "It rose. It fell. It stood."
    assert [found.end for found in sentence_ends(text, start=8, stop=17)] == [17]
    assert [found.end for found in sentence_ends(text, start=8, stop=16)] == []


@given(st.text(alphabet='aB .!?。…"”\n1', max_size=60))
def test_nothing_is_lost(text: str) -> None:
    """The sentences are the text but for the space between them, and ends come in order."""
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    ends = [found.end for found in sentence_ends(text)]
    assert ends == sorted(ends)


def test_there_is_one_splitter() -> None:
    """Six cut one text in six ways."""
    own = {
        path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py") if OWN_SPLITTER.search(path.read_text())
    }
    assert own == {"text/words.py"}
