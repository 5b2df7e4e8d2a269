from datetime import date
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.text.rendering import (
    ModelText,
    WrittenBy,
    block,
    code,
    fenced,
    fenced_lines,
    first_chars,
    inline,
    last_chars,
    own,
    parts_of,
    render,
    without_marks,
)
from explorer.text.sanitize import single_line

HOSTILE = st.text() | st.lists(
    st.sampled_from(["<<", ">>", "<", ">", "<<untrusted 0>>", "<<end ", "a", " ", "\n"])
).map("".join)


class Colour(StrEnum):
    """A code of the program."""

    RED = "red"


def test_only_numbers_dates_and_codes_are_shown_bare() -> None:
    """Text, and whatever else can be a text, is fenced."""
    made = own(
        "{count} on {day}, {colour}, by {name}: {error}",
        count=3,
        day=date(2026, 8, 10),
        colour=Colour.RED,
        name="Ann <<b>>",
        error=ValueError("no\nway"),
    )
    assert made == "3 on 2026-08-10, red, by <<Ann < <b> >>>: <<no way>>"
    assert own("{outer}!", outer=made) == f"{made}!"


def test_a_text_of_unknown_length_gets_the_shorter_fence() -> None:
    """A line is fenced on its line, lines on lines of their own; what is rendered stays, and nothing stays nothing."""
    assert fenced("a") == "<<a>>"
    assert fenced("a\nb").startswith("<<untrusted ")
    assert fenced("x" * 201).startswith("<<untrusted ")
    assert fenced("a", WrittenBy.MODEL).startswith("<<second-hand ")
    assert fenced(own("a")) == "a"
    assert (fenced(""), block(""), render(own(""), own("a"), own(""))) == ("", "", "a")


@pytest.mark.parametrize("name", ["S12", "searcher-2", "get_hn_comments", "openai:gpt-5.2", "searcher-2.t3.1"])
def test_a_code_is_shown_bare(name: str) -> None:
    """Ids and names that the program gives."""
    assert code(name) == name


@pytest.mark.parametrize("name", ["", "a b", "S12]", "a/b", "x" * 41, "a--b", "a-b-c-d-e-f-g-h", "né"])
def test_what_is_no_code_is_fenced(name: str) -> None:
    """Anything with a blank, a bracket or many words."""
    assert code(name) == f"<<{name}>>"


@given(HOSTILE)
def test_a_short_fence_ends_where_it_ends(text: str) -> None:
    """Whatever the text, no mark inside ends the fence, and people read the text again."""
    made = own("before {text} after", text=text)
    parts = list(parts_of(made))
    assert [made[part.start : part.end] for part in parts if not part.opening] == ["before ", " after"]
    assert made.count("\n") == 0
    assert without_marks(inline(text)).replace(" ", "") == single_line(text).replace(" ", "")


@given(HOSTILE, HOSTILE, st.integers(0, 300))
def test_a_cut_text_has_its_fences(first: str, second: str, place: int) -> None:
    """At any place: the beginning closes the fence that was cut, the end opens it again, and nothing gets out."""
    made = render(
        own("head {name}", name=first), block(f"{second}x", WrittenBy.MODEL), own("middle"), block(f"{first}y")
    )
    for cut in (first_chars(made, place), last_chars(made, place)):
        assert isinstance(cut, ModelText)
        shown = "".join(cut[part.start : part.end] for part in parts_of(cut) if not part.opening)
        assert set(shown) <= set("head midl\n")
        assert len(cut) <= place + 80 or cut == made


def test_the_lines_of_a_fence_are_found() -> None:
    """Those of the first one on lines of its own; to the end where it was cut."""
    made = render(own("head {name}", name="n"), block("a\nb"), block("c"))
    assert fenced_lines(made) == ["a", "b"]
    assert fenced_lines(block("a\nb")[:-25]) == ["a", "b"]
    assert fenced_lines("a <<b>>") == []
