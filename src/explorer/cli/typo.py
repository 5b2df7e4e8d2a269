"""A mistyped command must not become a paid question."""

import re
from collections.abc import Iterable, Sequence

from explorer.cli.help_text import COMMANDS
from explorer.errors import ConfigError

LONG_WORD_CHARS = 6
"""Words from this length on may be two edits away from a command."""
MAX_WORD_CHARS = 20
LIKE_A_RUN = re.compile(r"latest|\d{8}(-.*)?", re.DOTALL)
GENERIC_WORDS = ("help", "version")


def edit_distance(left: str, right: str) -> int:
    """Damerau-Levenshtein distance (optimal string alignment): a swap of two neighbours is one edit."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


def closest(word: str, known: Iterable[str], limit: int) -> str | None:
    """The known word at most `limit` edits away, the nearest first; None when there is none."""
    distances = sorted((edit_distance(word, name), name) for name in known)
    return distances[0][1] if distances and distances[0][0] <= limit else None


def refuse_mistyped_command(words: Sequence[str]) -> None:
    """Refuse a question that looks like a command with a slip in it, or like one that stands too late.

    A single bare word is judged, or a first word before something that can only be a run.

    Raises:
        ConfigError: It looks like a command; the hint says which, and how to ask it nevertheless.
    """
    first = words[0].strip().lower() if words else ""
    if not first or len(first) > MAX_WORD_CHARS or len(first.split()) != 1:
        return
    if len(words) > 1 and not LIKE_A_RUN.fullmatch(words[1]):
        return
    limit = 2 if len(first) >= LONG_WORD_CHARS else 1
    command = closest(first, (*COMMANDS, *GENERIC_WORDS), limit)
    if command is None:
        return
    if command == first:
        message = f"`{first}` is a command, and commands stand first"
        hint = f'write: explorer {first} [FLAGS]. To ask it as a question, write: explorer -- "{first}"'
    else:
        message = f"`{first}` looks like a mistyped command; it was not asked as a question"
        hint = (
            f"did you mean `explorer {command}`? "
            f'To ask it as a question, write: explorer -- "{first}", or use more words'
        )
    raise ConfigError(message, hint=hint)
