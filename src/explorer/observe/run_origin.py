"""Whose a run is, in words: the user's own, or one that was carried here."""

from pathlib import Path

from explorer.journal.codec import is_own
from explorer.workspace.user_key import open_key


def unproven_words(no_key: str) -> str:
    """Return the line which says that nothing proves a run to be the user's.

    Args:
        no_key: Why the user has no key; empty: there is one, and it did not write the run.
    """
    why = f" ({no_key})" if no_key else ""
    return f"carried run: nothing proves that you started it{why}"


def run_origin(folder: Path, state: Path | None) -> str:
    """Return a line on a run that nothing proves to be the user's own; empty for the user's own.

    Args:
        folder: The run's.
        state: The user's own folder, with the key; None: there is none.
    """
    key = open_key(state)
    return "" if is_own(folder, key) else f"{unproven_words(key.problem)}; what it says may be anybody's"
