"""The fields at the top of a markdown file."""

import re
from pathlib import Path

import pytest

from explorer.text.frontmatter import (
    fields_in,
    read_frontmatter,
    split_frontmatter,
    with_frontmatter,
    without_frontmatter,
)

SOURCES = Path(__file__).parents[2] / "src/explorer"
BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("text", "head", "body"),
    [
        ("---\na: 1\n---\nbody\n", "a: 1\n", "body\n"),
        ("---\r\na: 1\r\n---\r\nbody", "a: 1\r\n", "body"),
        ("---\n---\n\nbody", "", "\nbody"),
        ("---\na: 1\n---", "a: 1\n", ""),
        ("---\na: 1\nbody without an end", None, "---\na: 1\nbody without an end"),
        ("----\na: 1\n---\n", None, "----\na: 1\n---\n"),
        ("body\n---\n", None, "body\n---\n"),
        ("", None, ""),
    ],
)
def test_a_file_is_split_exactly(text: str, head: str | None, body: str) -> None:
    """Both kinds of line ends; the body is what is there to the byte, since a hash may be of it."""
    assert split_frontmatter(text) == (head, body)


@pytest.mark.parametrize("head", ["just words", "- a\n- b", "a: [", "a: b: c", "---", BOMB])
def test_what_is_no_list_of_fields_is_text(head: str) -> None:
    """A text may begin with a rule; and aliases, by which a few lines stand for gigabytes, are not read."""
    text = f"---\n{head}\n---\nbody\n"
    with pytest.raises(ValueError, match=r"."):
        fields_in(head)
    assert read_frontmatter(text) == ({}, text)
    assert without_frontmatter(text) == text


def test_what_is_written_is_read_back() -> None:
    """Texts in any script, and lines that look like an end."""
    fields = {"title": "五月 --- : x", "lines": "a\n---\nb", "n": 1}
    assert read_frontmatter(with_frontmatter(fields, "body\n")) == (fields, "body\n")


def test_there_is_one_reader() -> None:
    """Ten others had other rules for line ends and for what a rule of dashes is."""
    own = re.compile(r"partition\(\"\\n---\\n\"\)|yaml\.(?:safe_)?load\(")
    found = {path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py") if own.search(path.read_text())}
    assert found == {"text/frontmatter.py", "reports/earlier.py"}


@pytest.mark.parametrize("opened", ["- ", "? ", "[", "{", "a: {"])
def test_deep_nesting_is_refused_and_ends_no_process(opened: str) -> None:
    """Many C loaders have no limit of their own: 60 KB of it ended the process, and brackets took many seconds."""
    head = (opened * 99_000)[:99_000]
    with pytest.raises(ValueError, match=r"more than 40 levels|maximum nesting depth"):
        fields_in(head)
    text = f"---\n{head}\n---\nbody"
    assert read_frontmatter(text) == ({}, text)
