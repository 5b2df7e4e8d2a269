"""How often Python looks for garbage while a run works, and that it does not while modules are imported."""

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

COLLECTOR = (50_000, 20, 50)
"""The thresholds of `gc.set_threshold`. A run's state lives as long as the run: looking through it as often as usual
takes a tenth to a third of all CPU."""


@contextmanager
def importing() -> Generator[None]:
    """Disable garbage collection while modules are imported, and exempt what they made from later collections.

    It is for programs that own their process, such as the command line: all that is there at the end of an import is
    never looked through again. Where nothing was imported, nothing is changed.
    """
    was_enabled, before = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > before:
            gc.freeze()
        if was_enabled:
            gc.enable()


@contextmanager
def rare_collections() -> Generator[None]:
    """Make garbage collections rare while inside; afterwards, the caller's thresholds apply again.

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
