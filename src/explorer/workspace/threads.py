"""Work in a thread, which has an owner: who asked for it waits for its end, also when cancelled."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Event
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
One = TypeVar("One")


class StopWorkError(Exception):
    """Raised in a thread whose work nobody needs any more."""


RaiseIfStopped = Callable[[], None]
"""A function that work in a thread calls often: it raises `StopWorkError` when the work is to end."""


def never_stopped() -> None:
    """Return: the work is done to its end."""


def each(some: Iterable[One], raise_if_stopped: RaiseIfStopped) -> Iterator[One]:
    """Yield all of some; before each, the work may be stopped."""
    for one in some:
        raise_if_stopped()
        yield one


async def uninterrupted(write: Callable[Given, Returned], *args: Given.args, **kwargs: Given.kwargs) -> Returned:
    """Run a function that changes files in a thread, and return what it returns.

    A thread cannot be interrupted. A caller that is cancelled waits for its end: else a lock would be released, or the
    run resumed, while the file still changes.
    """
    return await _waited_for(asyncio.ensure_future(asyncio.to_thread(write, *args, **kwargs)), never_stopped)


async def stoppable(work: Callable[[RaiseIfStopped], Returned]) -> Returned:
    """Run long work in a thread of its own, and return what it returns; a caller that is cancelled stops it.

    The thread is none of those that all files are written in: these would wait for it.

    Args:
        work: Takes the function to call often. What it reads must not be changed by others meanwhile.
    """
    is_stopped = Event()

    def raise_if_stopped() -> None:
        if is_stopped.is_set():
            raise StopWorkError

    with ThreadPoolExecutor(1, "work") as threads:
        try:
            done = threads.submit(copy_context().run, work, raise_if_stopped)
            return await _waited_for(asyncio.wrap_future(done), is_stopped.set)
        finally:
            is_stopped.set()


async def _waited_for(work: asyncio.Future[Returned], stop: Callable[[], None]) -> Returned:
    """Return the result of work in a thread; a caller that is cancelled asks for its end, and waits for it."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop()
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # What it met is of no use to who was cancelled.
        raise
