"""Work in a thread: the loop serves others meanwhile, and nothing of it is left behind."""

import asyncio
import threading

import pytest

from explorer.workspace.threads import RaiseIfStopped, StopWorkError, stoppable

LONG_S = 30
"""Far more than anything here takes: who waits in vain fails."""


async def test_the_loop_serves_others_while_work_is_done() -> None:
    """The work waits for what only the loop does."""
    is_served = threading.Event()
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(stoppable(lambda _raise_if_stopped: is_served.wait(LONG_S)))
        tasks.create_task(asyncio.to_thread(is_served.set))
    assert work.result()


async def test_an_error_is_the_callers() -> None:
    """It comes out as it is."""
    with pytest.raises(ZeroDivisionError):
        await stoppable(lambda _raise_if_stopped: 1 // 0)


async def test_a_cancelled_caller_stops_the_work_and_waits_for_its_end() -> None:
    """When the caller is gone, so is the thread."""
    has_begun, ends = asyncio.Event(), list[threading.Thread]()
    loop = asyncio.get_running_loop()

    def work(raise_if_stopped: RaiseIfStopped) -> None:
        try:
            while True:
                raise_if_stopped()
                loop.call_soon_threadsafe(has_begun.set)
        except StopWorkError:
            ends.append(threading.current_thread())
            raise

    caller = asyncio.ensure_future(stoppable(work))
    await has_begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    (thread,) = ends
    assert not thread.is_alive()


async def test_slow_work_keeps_no_file_from_being_written() -> None:
    """Its threads are its own: more of it than the loop has threads for files, and these are still free."""
    are_written = threading.Event()
    async with asyncio.TaskGroup() as tasks:
        slow = [tasks.create_task(stoppable(lambda _stop: are_written.wait(LONG_S))) for _ in range(40)]
        await asyncio.to_thread(are_written.set)
    assert all(one.result() for one in slow)
