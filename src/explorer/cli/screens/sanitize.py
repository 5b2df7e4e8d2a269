"""Outside text made safe for a terminal."""

import re

from explorer.text.sanitize import single_line, visible

# ECMA-48 control sequences (CSI), operating system commands (OSC), and the rest that an ESC begins.
SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|\x9d).*?(?:\x07|\x1b\\|\x9c|$)|\x1b.")

CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def without_controls(text: str) -> str:
    """Drop terminal control sequences whole, then every other control character but newline and tab."""
    return SEQUENCE.sub("", text).translate(CONTROLS)


def plain(text: str) -> str:
    """Drop terminal control sequences whole, then every other character that cannot be seen; newlines stay."""
    return visible(SEQUENCE.sub("", text))


def one_line(text: str, limit: int = 0) -> str:
    """The same on one line, cut at `limit` characters when one is given."""
    return single_line(plain(text), limit)
