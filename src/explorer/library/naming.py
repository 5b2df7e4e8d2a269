"""What a report is called, and when two are about the same."""

import difflib
import re
import unicodedata

from explorer.evidence import canonical_url, visible

SLUG_CHARS = 80
SLUG_BYTES = 180
"""A name on disk takes 255 bytes, and a Chinese character three."""
EMOJI_MARK = "\ufe0f"
"""Shows nothing by itself, and is a letter's mark to Unicode."""
UNNAMED = "report"
SAME_TITLE = 0.88
"""How much of two titles must agree: above what two headlines of one site share, below one word more or less."""
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_]+")


def slug_of(title: str) -> str:
    """A file's name out of a title: letters and digits of any script, joined by hyphens; nothing else, so no path."""
    text = unicodedata.normalize("NFKC", visible(title).replace(EMOJI_MARK, "")).casefold()
    kept = "".join(c if unicodedata.category(c)[0] in "LMN" else "-" for c in text)
    slug = re.sub(r"-+", "-", kept).strip("-")[:SLUG_CHARS]
    return slug.encode()[:SLUG_BYTES].decode("utf-8", "ignore").strip("-") or UNNAMED


def one_line(text: str, limit: int = 400) -> str:
    """Without what cannot be seen, on one line of so many characters: text from outside stays where it is put."""
    return " ".join(visible(text).split())[:limit]


def is_same_address(one: str, other: str) -> bool:
    """Whether two addresses, neither of them empty, lead to the same page."""
    if not one or not other:
        return False
    try:
        return _without_scheme(one) == _without_scheme(other)
    except ValueError:  # what is no address can still be the same words
        return one == other


def _without_scheme(url: str) -> str:
    return re.sub(r"^https?://(www\.)?", "", canonical_url(url.strip()))


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
