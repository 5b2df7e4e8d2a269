"""Threads that a cancelled caller waits for."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Written = TypeVar("Written")


async def uninterrupted(write: Callable[Given, Written], *args: Given.args, **kwargs: Given.kwargs) -> Written:
    """Run a function that changes files in a thread, and return what it returns.

    A thread cannot be interrupted. A caller that is cancelled waits for its end: else a lock would be released, or the
    run resumed, while the file still changes.
    """
    work = asyncio.ensure_future(asyncio.to_thread(write, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # What it met is of no use to who was cancelled.
        raise
