"""The HTML of single comments: any text is read, and in time that its length bounds."""

import gc
import random
import sys
import time
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.documents.parsing.comment_html import CODE, plain_text
from explorer.documents.parsing.document import MAX_PIECE_CHARS

PIECES = (
    *(
        "<b> ",
        "<p>",
        "<i>",
        "</i>",
        "<pre>",
        "</pre>",
        "<a href=x>",
        "<a href='",
        "</a>",
        "<script>",
        "</script",
        "</x",
    ),
    *("<!--", "-->", "<![CDATA[", "]]>", "<?", "<!", "<", ">", "&", "&#", "&amp", "'", '"', "=", "/", " ", "\n", "   "),
    *("\x00", "<textarea>", "</textarea", "<style>", "<title>", "<svg>", "x", "\u00e9", "\ud800"),
)
"""What takes a careless reader long, or into an error."""
CPU_S = 20.0
"""Far above what the longest comment takes, 1 s, and less than one took that was read by the square of its spaces."""


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(max_size=200))
def test_any_comment_is_read(html: str) -> None:
    """Whatever a comment is, its text comes out, without the mark that reading uses."""
    assert CODE not in plain_text(html)


@given(st.sampled_from(PIECES), st.sampled_from(PIECES))
def test_twice_as_much_takes_twice_as_many_calls(one: str, two: str) -> None:
    """The calls that reading makes grow with the length of a comment, whatever is repeated in it."""
    assert calls_for((one + two) * 80) <= 2.2 * calls_for((one + two) * 40) + 200


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_longest_comment_is_read_in_bounded_time() -> None:
    """Two pieces repeated up to the limit of a comment, and much more, take seconds at most."""
    chance = random.Random(7)  # noqa: S311 - comments, not keys
    for one, two in [("<b> ", ""), ("<pre>", " "), *(chance.sample(PIECES, 2) for _ in range(30))]:
        html = (one + two) * (4 * MAX_PIECE_CHARS // len(one + two))
        began = time.process_time()
        assert plain_text(html).endswith("[...]")
        assert time.process_time() - began < CPU_S, (one, two)


def calls_for(html: str) -> int:
    """Count the calls of Python functions that reading makes, when all patterns it needs have been compiled."""
    plain_text(html)
    gc.disable()
    count = 0

    def see(_frame: FrameType, event: str, _argument: Any) -> None:  # noqa: ANN401 - the interpreter's signature
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        plain_text(html)
    finally:
        sys.setprofile(before)
        gc.enable()
    return count
