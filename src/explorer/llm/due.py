"""Sends each request when it is due by a rate that several processes share."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from explorer.schema.messages import LLMClient, Request, Turn


@dataclass(frozen=True)
class DueClient:
    """A client that waits until a request may be sent."""

    inner: LLMClient
    sending: Callable[[], AbstractAsyncContextManager[None]]
    """Entering waits; leaving notes how the request failed."""

    async def generate(self, request: Request) -> Turn:
        """Send a request once, when it is due.

        Raises:
            ModelError: No turn came.
        """
        async with self.sending():
            return await self.inner.generate(request)
