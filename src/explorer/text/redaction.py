"""The one place where keys are taken out of what is written: journal, files, logs, errors, screen."""

import base64
import json
from collections.abc import Iterable
from urllib.parse import quote

MIN_SECRET_CHARS = 8
"""A shorter "key" would be found everywhere, and is none."""
MARK = "[redacted]"


class Redactor:
    """Knows the keys of a run in the forms in which they travel: raw, URL, JSON, base64, hex, backwards."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if len(secret) >= MIN_SECRET_CHARS for form in _forms(secret)}
        # The longest first: a short form inside a long one would leave the rest of it in the text.
        self._forms = tuple(sorted(forms, key=len, reverse=True))
        self._bytes = tuple(form.encode() for form in self._forms)

    @property
    def longest(self) -> int:
        """Characters of the longest form: so much of a stream has to be seen at once."""
        return max(map(len, self._forms), default=0)

    def clean(self, text: str) -> str:
        """The text, with a mark in place of every key."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MARK)
        return text

    def is_in(self, content: bytes) -> bool:
        """Whether any key is in it: quick, because it is asked of everything that is written."""
        return any(form in content for form in self._bytes)

    def begins_at(self, text: str) -> int:
        """From where on the text's end may be the beginning of a key; its length, when it is not."""
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
