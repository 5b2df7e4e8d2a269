"""One attack of the table: what an outsider tries, with a control in which the same attempt succeeds."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Attack:
    """An attempt to gain something through what an outsider wrote."""

    name: str
    """Unique in its area, such as `base-url-in-dotenv`."""
    tried: str
    """What is tried, in one sentence for the reader of the table."""
    attempt: Callable[[Path], bool]
    """Try it against the product, in an empty folder; return whether the outsider gained anything."""
    control: Callable[[Path], bool]
    """Try the same where the guard is absent; it has to return True, or the attempt proves nothing."""
    residue: str = ""
    """Why it succeeds for now; named in `SECURITY.md`. Empty: it must fail."""
    missing: Callable[[], str] = lambda: ""
    """Return what this machine lacks for the attempt, such as a program; empty: nothing."""
    is_roots: bool = False
    """Whether only root can try it."""
