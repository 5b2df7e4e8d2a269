"""Text made safe to write and to show: no keys, nothing invisible, on one line where needed."""

import base64
import json
import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import quote

BLANKS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0e\uffa0\U000e0100-\U000e01ef]")
"""Letters and marks that show nothing: fillers, and variation selectors, of which whole messages can be made."""
CUT_MARK = "\u2026"


def visible(text: str) -> str:
    """Drop what a reader cannot see: control and format characters, tag characters, lone surrogates.

    Newline and tab stay. Invisible text can contain instructions that no person would notice.
    """
    if text.isascii() and text.isprintable():
        return text
    # By the distinct characters, which are few even in a page of a hundred thousand.
    unseen = {ord(c): None for c in set(text) - {"\n", "\t"} if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co"}}
    return BLANKS.sub("", text.translate(unseen) if unseen else text)


def single_line(text: str, max_chars: int = 0) -> str:
    """Put text on one line, without invisible characters.

    Args:
        text: Any external text.
        max_chars: Longest result, the mark of a cut included; 0: no limit.
    """
    line = " ".join(visible(text).split())
    return line if not max_chars or len(line) <= max_chars else line[: max_chars - 1] + CUT_MARK


MIN_SECRET_CHARS = 8
"""The least length of a key: shorter ones would match everywhere."""
REDACTED = "[redacted]"


class Redactor:
    """Replaces the keys of a run in any of their forms: raw, URL, JSON, base64, hex, backwards."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if len(secret) >= MIN_SECRET_CHARS for form in _forms(secret)}
        # The longest first: a short form inside a long one would leave the rest of it in the text.
        self._forms = tuple(sorted(forms, key=len, reverse=True))
        self._bytes = tuple(form.encode() for form in self._forms)

    @property
    def longest(self) -> int:
        """The length of the longest form: so many characters of a stream have to be read at once."""
        return max(map(len, self._forms), default=0)

    def clean(self, text: str) -> str:
        """Return the text with `REDACTED` in place of every key."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def is_in(self, content: bytes) -> bool:
        """Return whether any key is in it; fast, because everything that is written is checked."""
        return any(form in content for form in self._bytes)

    def begins_at(self, text: str) -> int:
        """Return the offset from which the text's end may be the beginning of a key; its length if it is not."""
        for start in range(max(0, len(text) - self.longest + 1), len(text)):
            if any(form.startswith(text[start:]) for form in self._forms):
                return start
        return len(text)


def _forms(secret: str) -> set[str]:
    raw = secret.encode()
    forms = {secret, secret[::-1], quote(secret, safe=""), json.dumps(secret)[1:-1], raw.hex(), raw.hex().upper()}
    for padding in range(3):
        # In base64 a key looks different by its place in what is encoded; the middle is what all places share.
        shifted = base64.b64encode(b"\0" * padding + raw).decode()
        start = (0, 2, 3)[padding]
        end = len(shifted) - (0 if (padding + len(raw)) % 3 == 0 else 4 - (padding + len(raw)) % 3)
        middle = shifted[start:end].rstrip("=")
        forms |= {middle, middle.replace("+", "-").replace("/", "_")}
    return {form for form in forms if len(form) >= MIN_SECRET_CHARS}


DECLARATION = re.compile(r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[!?][^>]*>?", re.DOTALL)
"""A comment, a section of raw text, a declaration or an instruction of HTML, up to the end of the text if need be."""


def parsable_html(html: str) -> str:
    """Return HTML that Python's `html.parser` reads in one pass: without comments and declarations and open tags.

    That parser takes time by the square of the number of comments or tags without an end, and fails on some sections.
    """
    whole, end, rest = DECLARATION.sub("", html).rpartition(">")
    return whole + end + rest.replace("<", "&lt;")
