"""Text from outside made safe to show: nothing invisible, on one line where it is part of one, marked as untrusted."""

import hashlib
import re
import unicodedata

BLANKS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0e\uffa0\U000e0100-\U000e01ef]")
"""Letters and marks that show nothing: fillers, and variation selectors, of which whole messages can be made."""
CUT_MARK = "\u2026"
FENCE_MARK_DIGITS = 16
"""Hexadecimal digits of a fence's mark: a text that holds its own would take 2^64 tries to find."""
FENCE_START = re.compile(rf"<<untrusted ([0-9a-f]{{{FENCE_MARK_DIGITS}}})>>")


def visible(text: str) -> str:
    """Drop what a reader cannot see: control and format characters, tag characters, lone surrogates.

    Newline and tab stay. Invisible text is a carrier of instructions that no person would notice.
    """
    # By its distinct characters, which are few: a page has a hundred thousand others.
    unseen = {ord(c): None for c in set(text) - {"\n", "\t"} if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co"}}
    return BLANKS.sub("", text.translate(unseen) if unseen else text)


def single_line(text: str, max_chars: int = 0) -> str:
    """Put text on one line, without what cannot be seen, so that it stays where it is put.

    Args:
        text: Text from outside.
        max_chars: Longest result, the mark of a cut included; 0: no limit.
    """
    line = " ".join(visible(text).split())
    return line if not max_chars or len(line) <= max_chars else line[: max_chars - 1] + CUT_MARK


def fence(text: str) -> str:
    """Mark text from outside as untrusted, wherever a model sees it.

    The mark is a hash of the text itself, so the text cannot contain its own closing mark.
    """
    clean = visible(text)
    mark = hashlib.sha256(clean.encode()).hexdigest()[:FENCE_MARK_DIGITS]
    return f"<<untrusted {mark}>>\n{clean}\n<<end {mark}>>"


def fenced_lines(text: str) -> list[str]:
    """Return the lines that a fence encloses, to the end of the text where its end is missing; none without a fence.

    Only the mark that began a fence ends it, so text behind a false mark is still inside.
    """
    lines = text.split("\n")
    for start, line in enumerate(lines):
        if match := FENCE_START.fullmatch(line):
            end_mark = f"<<end {match[1]}>>"
            end = next((index for index in range(len(lines) - 1, start, -1) if lines[index] == end_mark), len(lines))
            return lines[start + 1 : end]
    return []
