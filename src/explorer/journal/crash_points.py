"""Ends the process at a named point of the journal: for tests of what survives. Users' builds do not contain it.

`EXPLORER_CRASH=<point>:<n>[:<ending>]` names a point of `journal.CHECKPOINTS`, which time it is reached, and how
to end there: `KILL` (the default), `INT` (Ctrl-C pressed twice) or `TERM`.
"""

import _thread
import os
import re
import signal
from collections import Counter
from collections.abc import Callable

from explorer.journal.journal import CHECKPOINTS, OnCheckpoint
from explorer.schema.errors import ConfigError

VARIABLE = "EXPLORER_CRASH"
FORM = re.compile(r"(?P<point>\w+):(?P<n>[1-9]\d*)(?::(?P<ending>KILL|INT|TERM))?")


def crash_at(text: str) -> OnCheckpoint:
    """Return a callback for a journal that ends the process as `text` says.

    Raises:
        ConfigError: `text` is not `<point>:<n>[:KILL|INT|TERM]`.
    """
    found = FORM.fullmatch(text.strip())
    if found is None or found["point"] not in CHECKPOINTS:
        raise ConfigError(
            f"{VARIABLE}={text} names no point to end at",
            hint=f"write <point>:<n>, or <point>:<n>:KILL, INT or TERM; points are {', '.join(CHECKPOINTS)}",
        )
    end = _ENDINGS[found["ending"] or "KILL"]
    wanted = int(found["n"])
    reached: Counter[str] = Counter()

    def on_checkpoint(point: str) -> None:
        # Each point is reached by one thread at a time, so counting needs no lock.
        reached[point] += 1
        if point == found["point"] and reached[point] == wanted:
            end()

    return on_checkpoint


def _interrupt_twice() -> None:
    # Two signals sent to a process may become one, or leave time between them for the run to be wound down. These
    # two reach the same handlers and never merge. In two statements another thread could still run between them; one
    # call that makes both keeps the interpreter's lock, so nothing of the run happens in between.
    list(map(_thread.interrupt_main, (signal.SIGINT, signal.SIGINT)))


_ENDINGS: dict[str, Callable[[], None]] = {
    "KILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "INT": _interrupt_twice,
    "TERM": lambda: os.kill(os.getpid(), signal.SIGTERM),
}
