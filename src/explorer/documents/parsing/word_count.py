"""How many words a text has, also in scripts that put no spaces between them."""

import re

from explorer.text.words import count_words

FEW_WORDS = 50
"""Below, an extraction is suspected of having missed the text."""

LINK_TARGET = re.compile(r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?: \"[^\"]*\")?\)")


def words(text: str) -> int:
    """How many words a text has, the addresses of its links left out."""
    return count_words(without_targets(text))


def without_targets(text: str) -> str:
    """Markdown whose links have lost their addresses and kept their words."""
    return LINK_TARGET.sub("]", text)
