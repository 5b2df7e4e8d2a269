"""The user's order to stop, as requests, calls and agents meet it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from engine_stage import says
from explorer.agents.user_stop import StopEvent, StoppableClient, StoppedError, repeating
from explorer.schema.messages import Request, Turn

ASKED = Request(agent="searcher-1", role="searcher", model="m", system="", tools=(), history=(), max_output_tokens=10)
SAID = says("Done.")


class Client:
    """Answers when its wait is over."""

    def __init__(self, wait: Callable[[], Awaitable[object]]) -> None:
        self._wait = wait
        self.was_cut = False

    async def generate(self, request: Request) -> Turn:
        """Wait, then answer."""
        assert request is ASKED
        try:
            await self._wait()
        except asyncio.CancelledError:
            self.was_cut = True
            raise
        return SAID


async def test_a_request_is_cut_off_when_the_order_comes() -> None:
    """At once; the client is cancelled, and the agent's task is not."""
    stop = StopEvent()
    client = Client(asyncio.Event().wait)
    asyncio.get_running_loop().call_soon(stop.ask)
    with pytest.raises(StoppedError):
        await StoppableClient(client, stop, may_ask=True).generate(ASKED)
    assert client.was_cut
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_after_the_order_only_who_writes_up_may_ask() -> None:
    """A helper's request is not sent any more; the orchestrator's is."""
    stop = StopEvent()
    stop.ask()
    client = Client(lambda: asyncio.sleep(0))
    assert await StoppableClient(client, stop, may_ask=True).generate(ASKED) == SAID
    with pytest.raises(StoppedError):
        await StoppableClient(client, stop, may_ask=False).generate(ASKED)


async def test_a_timeout_of_what_is_inside_stays_one() -> None:
    """Nobody asked to stop: the error is not taken for an order."""
    with pytest.raises(TimeoutError):
        async with StopEvent().cut_off():
            raise TimeoutError


async def test_callbacks_are_called_once_and_only_while_inside() -> None:
    """Two orders are one."""
    stop = StopEvent()
    seen: list[str] = []
    with stop.when_asked(lambda: seen.append("before")):
        pass
    with stop.when_asked(lambda: seen.append("inside")):
        stop.ask()
        stop.ask()
    assert seen == ["inside"]


async def test_a_look_is_repeated_until_the_end() -> None:
    """And not after it."""
    seen: list[int] = []
    enough = asyncio.Event()

    def look() -> None:
        seen.append(1)
        if len(seen) == 3:
            enough.set()

    with repeating(look, 0.001):
        await enough.wait()
    count = len(seen)
    await asyncio.sleep(0.01)
    assert len(seen) == count


async def test_what_is_cut_off_when_the_order_is_withdrawn_waits_to_be_cancelled() -> None:
    """An order and its withdrawal in one go: the request is not reported as cut off, and its task ends cancelled."""
    stop = StopEvent()
    client = Client(asyncio.Event().wait)
    task = asyncio.create_task(StoppableClient(client, stop, may_ask=False).generate(ASKED))
    await asyncio.sleep(0)
    stop.ask()
    stop.withdraw()
    for _ in range(10):
        await asyncio.sleep(0)
    assert client.was_cut
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_order_that_was_withdrawn_refuses_no_request() -> None:
    """A helper asks as if it had never been given."""
    stop = StopEvent()
    stop.ask()
    stop.withdraw()
    assert await StoppableClient(Client(lambda: asyncio.sleep(0)), stop, may_ask=False).generate(ASKED) == SAID
