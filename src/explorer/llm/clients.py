"""The adapters of a run, opened when first needed and closed together."""

from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Self

from explorer.llm.advice import AdvisingClient
from explorer.llm.anthropic.messages import AnthropicClient
from explorer.llm.cache_warming import CacheWarmingClient
from explorer.llm.hosts import is_official
from explorer.llm.models import ANTHROPIC, OFFLINE, OPENAI, OPENAI_CHAT, OPENAI_RESPONSES, ModelRef
from explorer.llm.openai.chat import OpenAIClient
from explorer.llm.openai.responses import ResponsesClient
from explorer.llm.options import ClientOptions, ModelSetup, Timeouts, check_url
from explorer.llm.retry import Contact, RateGate, Timing
from explorer.llm.vendors import ModelAccess
from explorer.schema.errors import ConfigError
from explorer.schema.messages import LLMClient


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How long models are waited for, and by which clock; handed in so that tests wait for nothing."""

    timeouts: Timeouts = field(default_factory=Timeouts)
    """With one reply."""
    timing: Timing = field(default_factory=Timing)
    """Between attempts."""


SELF_HOSTED = Timeouts(first_content_s=600.0, idle_s=120.0, total_s=1800.0)
"""A model on someone's own machine may read a prompt at 30 tokens a second, and answer at 5."""

REASONING = Timeouts(first_content_s=600.0, idle_s=600.0, total_s=3600.0)
"""A model that reasons sends nothing while it does: its reasoning comes encrypted and in one piece."""


class Clients:
    """One adapter per provider, and one gate per model. Only the SDKs that are needed are imported.

    Args:
        setup: Keys, URLs and prices.
        openai_url: Over the setup's own: the local server that `choose` found.
        offline: Answers for the provider `offline`.
        retry_settings: With a reply, and between attempts.
    """

    def __init__(
        self,
        setup: ModelSetup,
        *,
        openai_url: str = "",
        offline: LLMClient | None = None,
        retry_settings: RetrySettings | None = None,
    ) -> None:
        self._setup = setup
        self._openai_url = openai_url or setup.openai_url
        self._offline = offline
        self._given = retry_settings
        self._retry_settings = retry_settings or RetrySettings()
        self._stack = AsyncExitStack()
        self._clients: dict[str, LLMClient] = {}
        self._gates: dict[ModelRef, RateGate] = {}
        self._contacts: dict[str, Contact] = {}
        """By vendor: its models are at one address, and one that answered shows that the address is right."""

    async def __aenter__(self) -> Self:
        """Return the adapters; none is open yet."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close every adapter that was opened."""
        await self._stack.aclose()

    @property
    def timing(self) -> Timing:
        """The clock and the sleep that gates and retries go by."""
        return self._retry_settings.timing

    async def open(self, models: Iterable[ModelRef]) -> None:
        """Open the clients of further vendors that a run asks; the others are opened when they are first asked."""
        for name in sorted({model.provider for model in models} & self._setup.vendors.keys()):
            access = ModelAccess(self._setup.network, self._setup.price)
            opened = self._setup.vendors[name].open(access)
            self._clients[name] = await self._stack.enter_async_context(opened)

    def client_for(self, model: ModelRef) -> LLMClient:
        """Return the adapter of a model's provider. It asks once; retrying is another's part.

        Raises:
            ConfigError: The provider is unknown, or its URL is none.
        """
        api = self._api_of(model)
        if api not in self._clients:
            self._clients[api] = self._open(model, api)
        return self._clients[api]

    def _api_of(self, model: ModelRef) -> str:
        """Return the provider, with the API that fits the server: the vendor's own hosts offer Responses for sure."""
        if model.provider != OPENAI:
            return model.provider
        return OPENAI_RESPONSES if self._is_openai else OPENAI_CHAT

    @property
    def _is_openai(self) -> bool:
        """Whether the server of OpenAI's kind is the vendor's own."""
        return not self._openai_url or is_official(self._openai_url)

    def gate_for(self, model: ModelRef) -> RateGate:
        """Return the gate that all requests for a model share; a run has one key per provider."""
        if model not in self._gates:
            contact = self._contacts.setdefault(model.vendor, Contact())
            self._gates[model] = RateGate(self._setup.max_parallel_requests, self.timing, contact=contact)
        return self._gates[model]

    def expect(self, models: Iterable[str]) -> None:
        """Take note of models that brought this run turns in an earlier process: an outage of theirs is waited out.

        Args:
            models: With their providers' prefixes.
        """
        for label in models:
            provider, _, name = label.partition(":")
            self._contacts[ModelRef(provider, name).vendor] = Contact(has_brought_turn=True)

    def _open(self, model: ModelRef, api: str) -> LLMClient:
        if api == ANTHROPIC:
            url = self._setup.anthropic_url
            options = self._options(url, "ANTHROPIC_BASE_URL", self._retry_settings.timeouts)
            client, has_cache = AnthropicClient(replace(options, key=self._setup.anthropic_key)), True
        elif api in {OPENAI_RESPONSES, OPENAI_CHAT}:
            options = self._options(self._openai_url, "OPENAI_BASE_URL", self._openai_timeouts(api))
            kind = ResponsesClient if api == OPENAI_RESPONSES else OpenAIClient
            client, has_cache = kind(replace(options, key=self._setup.openai_key)), self._is_openai
        elif self._offline is not None and api == OFFLINE:
            return self._offline
        else:
            raise ConfigError(f"no adapter for the model {model}", hint="see `explorer models`")
        self._stack.push_async_exit(client)
        advised = AdvisingClient(client, api)
        return CacheWarmingClient(advised, self.timing.clock) if has_cache else advised

    def _openai_timeouts(self, api: str) -> Timeouts:
        if self._given is not None:
            return self._given.timeouts
        if not self._is_openai:
            return SELF_HOSTED
        return REASONING if api == OPENAI_RESPONSES else self._retry_settings.timeouts

    def _options(self, base_url: str, setting: str, timeouts: Timeouts) -> ClientOptions:
        if base_url:
            check_url(base_url, setting)
        return ClientOptions(base_url=base_url, timeouts=timeouts, price=self._setup.price, network=self._setup.network)
