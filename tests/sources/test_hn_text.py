"""Hacker News' HTML as text."""

from collections.abc import Callable

import pytest

from explorer.documents.parsing.comment_html import plain_text
from explorer.documents.parsing.html_pages import markdown_of


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("Plain &amp; simple &#x27;quote&#x27; a&#x2F;b", "Plain & simple 'quote' a/b"),
        ("One<p>Two<p>Three", "One\n\nTwo\n\nThree"),
        ("Old text\nwith line breaks<p> and spaces ", "Old text with line breaks\n\nand spaces"),
        ("&gt; quoted<p>answer", "> quoted\n\nanswer"),
        ("an <i>important</i> word", "an *important* word"),
        (
            'see <a href="https:&#x2F;&#x2F;a.io&#x2F;long" rel="nofollow">https:&#x2F;&#x2F;a.io&#x2F;lo...</a>.',
            "see https://a.io/long.",
        ),
        ('the <a href="https://a.example/">docs</a>', "the docs (https://a.example/)"),
        ('an <a href="https://a.example/">open', "an open (https://a.example/)"),
        ("a <a>bare</a> link", "a bare link"),
        (
            "code:<p><pre><code>  if x:\n\n    y &lt; 1\n</code></pre>\nafter",
            "code:\n\n```\n  if x:\n\n    y < 1\n```\n\nafter",
        ),
        ("<pre><code>never closed", "```\nnever closed\n```"),
        ("a<br>b<unknown>c</unknown>", "a\nbc"),
        ("caf\u00e9 \u2014 \u65e5\u672c\u8a9e \U0001f600", "caf\u00e9 \u2014 \u65e5\u672c\u8a9e \U0001f600"),
    ],
)
def test_plain_text(html: str, text: str) -> None:
    """Paragraphs, entities, links with their whole address, italics and code come out as written."""
    assert plain_text(html) == text


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["<!--", "<![", "<a ", "<a b='", "<?", "</", '<a "'])
@pytest.mark.parametrize("read", [plain_text, markdown_of])
def test_html_without_ends_is_read_in_one_pass(read: Callable[[str], str], piece: str) -> None:
    """Half a million characters of what never ends take a moment, where Python's own parser takes hours or fails."""
    assert read(f"<p>before</p>{piece * (500_000 // len(piece))}").startswith("before")
    assert read(f"<p>before</p>{piece * (500_000 // len(piece))}'\"-->").startswith("before")


def test_what_is_no_tag_is_text() -> None:
    """A comparison, a quote in a tag and a comment are read as browsers do."""
    assert plain_text("a < b <!-- no --> and c > d <b title='x > y'>e</b> <![if x]> f <3") == "a < b and c > d e f <3"
