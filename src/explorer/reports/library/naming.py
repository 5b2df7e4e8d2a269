"""What a report is called, and when two are about the same."""

import difflib
import re
import unicodedata

from explorer.text.sanitize import visible
from explorer.text.urls import page_key
from explorer.text.words import CJK

MAX_LINE_CHARS = 400
"""Of a title, a verdict or an id in a page's frontmatter."""
SLUG_CHARS = 80
SLUG_BYTES = 180
"""A name on disk takes 255 bytes, and a Chinese character three."""
EMOJI_MARK = "\ufe0f"
"""Shows nothing by itself, and is a letter's mark to Unicode."""
UNNAMED = "report"
SAME_TITLE = 0.88
"""How much of two titles must agree: above what two headlines of one site share, below one word more or less."""
WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")


def slug_of(title: str) -> str:
    """A file's name out of a title: letters and digits of any script, joined by hyphens; nothing else, so no path."""
    text = unicodedata.normalize("NFKC", visible(title).replace(EMOJI_MARK, "")).casefold()
    kept = "".join(c if unicodedata.category(c)[0] in "LMN" else "-" for c in text)
    slug = re.sub(r"-+", "-", kept).strip("-")[:SLUG_CHARS]
    return slug.encode()[:SLUG_BYTES].decode("utf-8", "ignore").strip("-") or UNNAMED


def is_same_address(one: str, other: str) -> bool:
    """Whether two addresses, neither of them empty, lead to the same page."""
    return bool(one and other) and page_key(one) == page_key(other)


def is_same_title(one: str, other: str) -> bool:
    """Whether two titles say the same in nearly the same words; with other figures in them they never do."""
    ours, theirs = _words(one), _words(other)
    if not ours or not theirs or _figures(ours) != _figures(theirs):
        return False
    return difflib.SequenceMatcher(None, " ".join(ours), " ".join(theirs)).ratio() >= SAME_TITLE


def _words(title: str) -> list[str]:
    text = unicodedata.normalize("NFKC", visible(title)).casefold()
    return WORD.findall(re.sub(r"^(show|ask|tell|launch) hn:", "", text))


def _figures(words: list[str]) -> list[str]:
    return sorted(word for word in words if any(c.isdigit() for c in word))
