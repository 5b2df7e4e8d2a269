"""The clients of a run's models, opened and closed together, with one gate for each model."""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from explorer.llm.models import OFFLINE, ModelRef, ModelSetup
from explorer.llm.options import Timeouts
from explorer.llm.prompt_cache import CacheWarmingClient
from explorer.llm.retry import Contact, RateGate, Timing
from explorer.llm.vendors import ModelAccess
from explorer.schema.errors import ConfigError
from explorer.schema.messages import LLMClient, Request, Turn
from explorer.schema.shared_limits import Holding, RequestUse, SharedHold, SharedLimits, hold_nothing


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


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """Timeouts, clock and shared limits of requests, passed in so that tests do not wait."""

    timeouts: Timeouts = field(default_factory=Timeouts)
    """The timeouts of one reply."""
    timing: Timing = field(default_factory=Timing)
    """The clock of waits between attempts."""
    shared: SharedLimits | None = None
    """Limits of requests that the run shares with others; None: there are none."""


class Clients:
    """One client for each prefix of a vendor, and one gate for each model.

    Args:
        setup: The vendors and their settings.
        offline: The client of the provider `offline`.
        retry_settings: Timeouts of a reply, and the clock of the waits between attempts.
    """

    def __init__(
        self, setup: ModelSetup, *, offline: LLMClient | None = None, retry_settings: RetrySettings | None = None
    ) -> None:
        self._setup = setup
        self._timeouts = retry_settings.timeouts if retry_settings else None
        self.shared = retry_settings.shared if retry_settings else None
        """Limits that the run shares with others."""
        self.timing = (retry_settings or RetrySettings()).timing
        """The clock and the sleep that gates and retries use."""
        self._stack = AsyncExitStack()
        self._clients: dict[str, LLMClient] = {OFFLINE: offline} if offline is not None else {}
        self._gates: dict[ModelRef, RateGate] = {}
        self._contacts: dict[str, Contact] = {}
        """The contact of each vendor: its models have one address, and one that answered shows that it is right."""

    async def __aenter__(self) -> Self:
        """Return the clients; none is open yet."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close every client that was opened."""
        await self._stack.aclose()

    async def open(self, models: Iterable[ModelRef]) -> None:
        """Open the clients that a run's models need.

        Raises:
            ConfigError: A vendor does not exist, or an address or a key cannot be used.
        """
        for provider in sorted({model.provider for model in models} - self._clients.keys()):
            one = self._setup.vendor_of(provider)
            if one is None:
                raise ConfigError(f"no vendor of models is called {provider!r}", hint="see `explorer models`")
            access = ModelAccess(self._setup.network, self._setup.price, provider, self._timeouts)
            client = await self._stack.enter_async_context(one.vendor.open(one.settings, access))
            if self.shared is not None:
                # Inside of what holds requests back for the cache: a request is sent when it is due.
                client = DueClient(client, partial(self.shared.sending, provider))
            has_cache = one.server.has_prompt_cache
            self._clients[provider] = CacheWarmingClient(client, self.timing.clock) if has_cache else client

    def holding(self, model: ModelRef, *, is_priced: bool) -> Holding:
        """Return what holds the worst case of requests for a model in the limits that the run shares."""
        shared = self.shared
        if shared is None:
            return hold_nothing

        def hold(most: RequestUse) -> AbstractAsyncContextManager[SharedHold]:
            return shared.holding(model.provider, most if is_priced else replace(most, cost_usd=None))

        return hold

    def client_for(self, model: ModelRef) -> LLMClient:
        """Return the client of a model that was opened. It does not retry."""
        return self._clients[model.provider]

    def gate_for(self, model: ModelRef) -> RateGate:
        """Return the gate that all requests for a model share; a run has one key per vendor."""
        if model not in self._gates:
            contact = self._contacts.setdefault(self._setup.contact_of(model.provider), Contact())
            self._gates[model] = RateGate(self._setup.max_parallel_requests, self.timing, contact=contact)
        return self._gates[model]

    def expect(self, models: Iterable[str]) -> None:
        """Record which models brought turns in an earlier process of the run, so that outages of theirs are waited for.

        Args:
            models: Their names with the vendors' prefixes.
        """
        for label in models:
            provider = label.partition(":")[0]
            self._contacts[self._setup.contact_of(provider)] = Contact(has_brought_turn=True)
