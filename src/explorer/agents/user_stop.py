"""The user's order to stop: requests and calls are cut off, and the report gets a short time."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from explorer.schema.errors import ExplorerError
from explorer.schema.messages import LLMClient, Request, Turn

REPORT_S = 30.0
"""Seconds from the order to the report: when no model has written one by then, the engine writes its own."""
CALL_GRACE_S = 2.0
"""Seconds from the order to the end of commands and lookups that are at work."""
LOOK_EVERY_S = 0.5


class StoppedError(ExplorerError):
    """Raised in what is cut off because the user stops the run."""

    def __init__(self) -> None:
        super().__init__("it was cut off, because the run is being stopped")


class StopEvent:
    """The user's order to stop the run. Use it only in the event loop's thread."""

    def __init__(self) -> None:
        self._callbacks: set[Callable[[], None]] = set()
        self.is_asked = False

    def ask(self) -> None:
        """Give the order: code inside `cut_off` is cut off, and each callback of `when_asked` is called once."""
        if self.is_asked:
            return
        self.is_asked = True
        for callback in tuple(self._callbacks):
            callback()

    def withdraw(self) -> None:
        """Take the order back, because the run's task is about to be cancelled: nothing is recorded as cut off."""
        self.is_asked = False

    @contextmanager
    def when_asked(self, callback: Callable[[], None]) -> Generator[None]:
        """Call `callback` when the order comes within the context; not for an earlier order."""
        self._callbacks.add(callback)
        try:
            yield
        finally:
            self._callbacks.discard(callback)

    @asynccontextmanager
    async def cut_off(self, after_s: float = 0.0) -> AsyncGenerator[None]:
        """Cut off the code in the context when the order comes while it runs; wait for cancellation if it is withdrawn.

        Args:
            after_s: Seconds that the code has to end by itself.

        Raises:
            StoppedError: The code was cut off.
        """
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(None)
        try:
            async with limit:
                with self.when_asked(lambda: limit.reschedule(loop.time() + after_s)):
                    yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            if not self.is_asked:
                # Withdrawn between the order and now. An end recorded here would be kept when the run is resumed.
                await asyncio.get_running_loop().create_future()
            raise StoppedError from error


class StoppableClient:
    """A client whose request is cut off when the user stops the run; its turn is then not recorded.

    Args:
        client: The client that sends the requests.
        stop: The order to stop.
        may_ask: Whether requests that come after the order are still sent.
    """

    def __init__(self, client: LLMClient, stop: StopEvent, *, may_ask: bool) -> None:
        self._client = client
        self._stop = stop
        self._may_ask = may_ask

    async def generate(self, request: Request) -> Turn:
        """Send a request; cut it off when the order to stop comes.

        Raises:
            ModelError: The client brought no turn.
            StoppedError: The order came.
        """
        if self._stop.is_asked and not self._may_ask:
            raise StoppedError
        async with self._stop.cut_off():
            return await self._client.generate(request)


@contextmanager
def repeating(look: Callable[[], None], every_s: float = LOOK_EVERY_S) -> Generator[None]:
    """Call `look` every so many seconds within the context, in the event loop's thread, whatever the run waits for."""
    loop = asyncio.get_running_loop()
    handle: asyncio.TimerHandle

    def again() -> None:
        nonlocal handle
        look()
        handle = loop.call_later(every_s, again)

    handle = loop.call_later(every_s, again)
    try:
        yield
    finally:
        handle.cancel()
