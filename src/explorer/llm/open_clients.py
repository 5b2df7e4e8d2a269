"""The adapters of a run, opened when first needed and closed together."""

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Self

from explorer.errors import ConfigError
from explorer.llm.anthropic_messages import AnthropicClient
from explorer.llm.models import ANTHROPIC, OFFLINE, OPENAI, ModelRef
from explorer.llm.openai_chat import OpenAIClient
from explorer.llm.options import ClientOptions, Timeouts, check_url
from explorer.llm.retry import RateGate
from explorer.messages import LLMClient
from explorer.settings import Settings


class Clients:
    """One adapter per provider, and one gate per model. Only the SDKs that are needed are imported.

    Args:
        settings: Keys, URLs and limits.
        openai_url: Over the settings' own: the local server that `choose` found.
        offline: Answers for the provider `offline`.
        timeouts: Patience with a reply.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        openai_url: str = "",
        offline: LLMClient | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self._settings = settings
        self._openai_url = openai_url or settings.services.openai_url
        self._offline = offline
        self._timeouts = timeouts or Timeouts()
        self._stack = AsyncExitStack()
        self._clients: dict[str, LLMClient] = {}
        self._gates: dict[ModelRef, RateGate] = {}

    async def __aenter__(self) -> Self:
        """Return the adapters; none is open yet."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close every adapter that was opened."""
        await self._stack.aclose()

    def client_for(self, model: ModelRef) -> LLMClient:
        """Return the adapter of a model's provider. It asks once; retrying is another's part.

        Raises:
            ConfigError: The provider is unknown, or its URL is none.
        """
        if model.provider not in self._clients:
            self._clients[model.provider] = self._open(model)
        return self._clients[model.provider]

    def gate_for(self, model: ModelRef) -> RateGate:
        """Return the gate that all requests for a model share; a run has one key per provider."""
        if model not in self._gates:
            # The orchestrator asks beside its helpers.
            self._gates[model] = RateGate(self._settings.limits.max_parallel_agents + 1)
        return self._gates[model]

    def _open(self, model: ModelRef) -> LLMClient:
        secrets = self._settings.secrets
        if model.provider == ANTHROPIC:
            options = self._options(self._settings.services.anthropic_url, "ANTHROPIC_BASE_URL")
            client = AnthropicClient(replace(options, key=secrets.anthropic_key))
        elif model.provider == OPENAI:
            options = self._options(self._openai_url, "OPENAI_BASE_URL")
            client = OpenAIClient(replace(options, key=secrets.openai_key))
        elif self._offline is not None and model.provider == OFFLINE:
            return self._offline
        else:
            raise ConfigError(f"no adapter for the model {model}", hint="see `explorer models`")
        self._stack.push_async_exit(client)
        return client

    def _options(self, base_url: str, setting: str) -> ClientOptions:
        if base_url:
            check_url(base_url, setting)
        return ClientOptions(base_url=base_url, timeouts=self._timeouts, price=self._settings.price)
