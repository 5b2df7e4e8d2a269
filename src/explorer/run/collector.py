"""How often Python looks for garbage while a run works."""

import gc
from collections.abc import Generator
from contextlib import contextmanager

COLLECTOR = (50_000, 20, 50)
"""The thresholds of `gc.set_threshold`. A run's state lives as long as the run: looking through it as often as usual
takes a tenth to a third of all CPU."""


@contextmanager
def rare_collections() -> Generator[None]:
    """Have Python look for garbage less often while inside; afterwards, the caller's thresholds hold again.

    Of several runs at once, the first one changes the thresholds and restores them at its end. A run that is still at
    work then has the caller's: it is slower, and nothing else. Thresholds that the caller sets meanwhile stay.
    """
    before = gc.get_threshold()
    if before[0] >= COLLECTOR[0]:
        yield
        return
    gc.set_threshold(*COLLECTOR)
    try:
        yield
    finally:
        if gc.get_threshold() == COLLECTOR:
            gc.set_threshold(*before)
