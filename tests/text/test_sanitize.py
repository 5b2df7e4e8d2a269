"""Text from outside, made safe to show on a line."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.text.sanitize import single_line, visible

SOURCES = Path(__file__).parents[2] / "src/explorer"
HIDDEN = "".join(map(chr, (0x200B, 0x202E, 0xFEFF, 0x2062, 0xE0041, 0xFE0E, 0x115F)))
OWN_FUNCTION = re.compile(r"^ *def _?(one_line|single_line|visible)\(", re.MULTILINE)
OWN_JOIN = re.compile(r"\.join\(visible\(")
OWN_INVISIBLE = re.compile(r"\\u(?:00ad|200[be]|202[ae]|206[02]|feff)", re.IGNORECASE)


@pytest.mark.parametrize(
    ("text", "max_chars", "line"),
    [
        ("  one\ttwo\n\nthree ", 0, "one two three"),
        (f"pass{HIDDEN}word", 0, "password"),
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde\u2026"),
        ("", 5, ""),
    ],
)
def test_text_is_put_on_one_line(text: str, max_chars: int, line: str) -> None:
    """White space is one space, nothing invisible is left, and a cut is marked within the length that is allowed."""
    assert single_line(text, max_chars) == line


@given(st.text(), st.integers(1, 40))
def test_no_text_leaves_its_line(text: str, max_chars: int) -> None:
    """Whatever it holds: no line break, nothing invisible, not longer than allowed, and the same when done twice."""
    line = single_line(text, max_chars)
    assert line.splitlines() in ([], [line])
    assert visible(line) == line
    assert len(line) <= max_chars
    assert single_line(line, max_chars) == line


def test_there_is_one_implementation() -> None:
    """An own one would miss what this one learns; the terminal's drops control sequences first and then calls it."""
    texts = {path.relative_to(SOURCES).as_posix(): path.read_text() for path in SOURCES.rglob("*.py")}
    own = [f"{name}: {found}" for name, text in texts.items() for found in OWN_FUNCTION.findall(text)]
    assert sorted(own) == [
        "observe/formatting.py: one_line",
        "text/sanitize.py: single_line",
        "text/sanitize.py: visible",
    ]
    assert [name for name, text in texts.items() if OWN_JOIN.search(text)] == ["text/sanitize.py"]
    assert [name for name, text in texts.items() if OWN_INVISIBLE.search(text)] == []
