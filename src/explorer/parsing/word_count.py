"""How many words a text has, also in scripts that put no spaces between them."""

import re

FEW_WORDS = 50
"""Below, an extraction is suspected of having missed the text."""

LINK_TARGET = re.compile(r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?: \"[^\"]*\")?\)")
UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
"""Kana, Han, Thai: each letter counts as a word, which is more than the truth and near enough."""
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}][^\s{UNSPACED}]*")
"""Marks that stand alone, like those of lists and tables, are no words."""


def words(text: str) -> int:
    """How many words a text has, the addresses of its links left out."""
    return sum(1 for _ in WORD.finditer(without_targets(text)))


def without_targets(text: str) -> str:
    """Markdown whose links have lost their addresses and kept their words."""
    return LINK_TARGET.sub("]", text)
