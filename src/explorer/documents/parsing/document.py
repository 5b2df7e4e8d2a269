"""What a parser gives: the text of a document, what it says of itself, and what is wrong with it."""

from dataclasses import dataclass

TRUNCATED = "truncated"
"""Its end is missing."""
PAYWALL = "paywall"
CHALLENGE = "challenge"
"""A check for robots stands in the text's place."""
SCRIPT_SHELL = "script_shell"
"""Scripts were to load the text."""
NO_TEXT_LAYER = "no_text_layer"
"""Pages of a PDF are pictures: their words cannot be read."""


@dataclass(frozen=True)
class Document:
    """The text of a page or a file, and what is known about it."""

    title: str
    """May be empty."""
    text: str
    """Markdown, or the text as it is."""
    author: str = ""
    published: str = ""
    """An ISO date or time, when the document tells one."""
    language: str = ""
    """A code like `en` or `zh`, when the document tells one."""
    flags: tuple[str, ...] = ()
    pages: int = 0
    """Of a PDF, all of them; 0 where there are none."""
    site: str = ""
    """The name of the site, when the document tells one."""
