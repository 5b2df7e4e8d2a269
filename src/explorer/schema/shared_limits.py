"""The port to limits that a run shares with runs of other processes, such as one of dollars for all of them.

The engine asks before each attempt at a request, and says afterwards what it used. It does not know who else asks.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RequestUse:
    """What an attempt at a request uses, or can use at most."""

    requests: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    """None: no price is known."""


NOTHING_USED = RequestUse()


@dataclass(slots=True)
class SharedHold:
    """What is held for one attempt. Whoever has it sets `used` before giving it back."""

    used: RequestUse = NOTHING_USED


Holding = Callable[[RequestUse], AbstractAsyncContextManager[SharedHold]]
"""Hold the worst case of one attempt while inside, and book what was used at the end."""


class SharedLimits(Protocol):
    """Limits over several runs."""

    def holding(self, provider: str, most: RequestUse) -> AbstractAsyncContextManager[SharedHold]:
        """Hold the worst case of one attempt while inside; entering waits for others and for the provider.

        Args:
            provider: A vendor's prefix.
            most: The worst case.

        Raises:
            PausedError: Too little is left, and no more will come soon.
            ConfigError: A limit of money cannot be kept, because the model has no known price.
        """
        ...

    def sending(self, provider: str) -> AbstractAsyncContextManager[None]:
        """Send one request while inside; entering waits until it is due, and leaving notes how it failed."""
        ...


def hold_nothing(most: RequestUse) -> AbstractAsyncContextManager[SharedHold]:  # noqa: ARG001 - a `Holding`
    """Hold nothing: no limits are shared."""
    return nullcontext(SharedHold())
