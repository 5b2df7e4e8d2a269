"""How many tokens a text can have at most, before any provider has counted them.

Tokenizers make words of a language out of the letters and blanks of its prose. For all else a byte can be a token of
its own: rare scripts, emoji, code, keys and pictures written as letters.
"""

LETTERS = b"abcdefghijklmnopqrstuvwxyz"
"""Bytes of which a token has two at least, in prose of any language that is written with them."""
BYTES_PER_TOKEN = 2


def most_tokens(text: str) -> int:
    """Return an upper bound of a text's tokens; words of rare letters alone can have a quarter more."""
    content = text.encode("utf-8", "replace")
    letters = len(content) - len(content.translate(None, LETTERS))
    # A blank is a part of the word after it.
    prose = letters + min(letters, content.count(b" "))
    return len(content) - prose + -(-prose // BYTES_PER_TOKEN)
