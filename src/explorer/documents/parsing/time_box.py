"""A soft limit of time around a slow judgement, inside the worker; the hard one is set by the system."""

import contextlib
import signal
from collections.abc import Generator
from types import FrameType


class OutOfTime(BaseException):
    """The time in the box is over."""


@contextlib.contextmanager
def time_box(seconds: float) -> Generator[None]:
    """Raise `OutOfTime` inside after so many seconds; without a limit where the system or the thread cannot do it."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise OutOfTime

    try:
        before = signal.signal(signal.SIGALRM, stop)
    except (AttributeError, ValueError):  # no such signal here, or not the main thread
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
