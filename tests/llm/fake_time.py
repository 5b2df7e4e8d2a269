"""A clock for tests of waits: nothing is waited for, and the clock says as if it had been."""

import asyncio

from explorer.llm.retry import Timing


class FakeTime:
    """A clock that only sleeping moves on; sleepers wake in the order of their times."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.timing = Timing(clock=lambda: self.now, sleep=self.sleep, random=lambda: 1.0)

    async def sleep(self, seconds: float) -> None:
        """Move the clock on."""
        self.slept.append(seconds)
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)
