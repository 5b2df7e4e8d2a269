"""The adapter for Chat Completions of OpenAI and every compatible server, on the official SDK's transport."""

from collections.abc import Collection
from typing import Any, Self, cast

import httpx2
from loguru import logger

from explorer.llm.bound_reasoning import BoundReasoning
from explorer.llm.bounds import ReplyMeter
from explorer.llm.dialect import Dialect, dialect_of, learn
from explorer.llm.exchange import converse, http_client
from explorer.llm.faults import RefusedError, model_error, read_refusal
from explorer.llm.foreign_answers import connection_error
from explorer.llm.frozen_head import FrozenHeads
from explorer.llm.hosts import is_official
from explorer.llm.openai_reply import OpenAIReply
from explorer.llm.openai_request import PROVIDER, to_head, to_messages, to_rest
from explorer.llm.options import ClientOptions, Place, key_text
from explorer.llm.prices import cost_usd
from explorer.llm.sending import Sender
from explorer.messages import Request, Turn

MOST_LESSONS = 8
"""How often one request is written otherwise because the server refused it."""

DEFAULT_URL = "https://api.openai.com/v1"


class OpenAIClient:
    """Asks OpenAI's models and those of compatible servers: Ollama, LM Studio, llama.cpp, vLLM, gateways.

    One connection pool per adapter; close it with `async with` or `aclose`.
    """

    def __init__(self, options: ClientOptions) -> None:
        import openai  # noqa: PLC0415 - SDKs are slow to import

        base_url = options.base_url or DEFAULT_URL
        self._options = options
        self._is_official = is_official(base_url)
        self._heads: dict[Dialect, FrozenHeads] = {}
        self._dialects: dict[str, Dialect] = {}
        """By model, what it accepts, as far as that is known by now."""
        self._reasoning = BoundReasoning(PROVIDER)
        name = "OpenAI" if self._is_official else "the OpenAI-compatible server"
        self._place = Place(name, base_url, "OPENAI_API_KEY", "OPENAI_BASE_URL", options.key, options.network)
        client = http_client(base_url, options, openai.DefaultAioHttpClient)
        # Key and URL are always given, or the SDK would look for its own in the environment.
        self._sdk = openai.AsyncOpenAI(
            api_key=key_text(options.key, self._place.key_setting),
            base_url=base_url,
            max_retries=0,
            http_client=client,
        )
        if not self._is_official:
            # The SDK reads these from the environment; another server has no business knowing them.
            self._sdk.organization = None
            self._sdk.project = None
        # Whole, so that the SDK need not put it together for every request.
        self._url = f"{str(self._sdk.base_url).rstrip('/')}/chat/completions"
        self._stream_class = openai.AsyncStream[Any]
        self._status_error = openai.APIStatusError
        self._sender = Sender(self._post, client, self._place, options.bounds)
        self._connection_error = openai.APIConnectionError

    async def __aenter__(self) -> Self:
        """Return the client, which is open from the start."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close the connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sdk.close()

    async def generate(self, request: Request) -> Turn:
        """Ask once and return the complete turn.

        Raises:
            ModelError: No turn came; nothing of the attempt may be used.
        """
        bound = self._reasoning.before(request)
        turn = await self._ask(request, bound.kept)
        if any("reasoning_details" in block for block in turn.blocks):
            turn = turn.model_copy(update={"bound_to": bound.digest})
        # Another server sets its own prices, whatever its models are called.
        priced_as = "openai" if self._is_official else "other"
        cost = cost_usd(request.model, priced_as, turn.usage, self._options.price)
        return turn if cost is None else turn.model_copy(update={"cost_usd": cost})

    async def _ask(self, request: Request, kept: Collection[int]) -> Turn:
        """Ask, and ask again as the server wants it when its refusal says how."""
        for _ in range(MOST_LESSONS):
            dialect = self._dialect(request.model)
            try:
                return await self._ask_in(dialect, request, kept)
            except RefusedError as error:
                if not self._has_learnt(request.model, dialect, error):
                    raise
        return await self._ask_in(self._dialect(request.model), request, kept)

    async def _ask_in(self, dialect: Dialect, request: Request, kept: Collection[int]) -> Turn:
        heads = self._heads.get(dialect)
        if heads is None:
            heads = self._heads[dialect] = FrozenHeads(lambda asked: to_head(asked, dialect))
        meter = ReplyMeter(self._place, request.max_output_tokens, self._options.bounds)
        reply = OpenAIReply(self._place, [tool.name for tool in request.tools], meter)
        body = heads.body(request, to_messages(request, dialect, kept), to_rest(request, dialect))
        await converse(self._sender.post, body, reply, self._place, self._options.timeouts)
        return reply.turn(request.model)

    def _dialect(self, model: str) -> Dialect:
        if model not in self._dialects:
            self._dialects[model] = dialect_of(self._place.base_url, model)
        return self._dialects[model]

    def _has_learnt(self, model: str, used: Dialect, error: RefusedError) -> bool:
        """Note what a refusal teaches; say whether the request would now be written otherwise."""
        learnt = learn(self._dialects[model], error.refusal)
        if learnt is not None:
            self._dialects[model] = learnt
            logger.info("{} wants requests otherwise, and gets them so from now on: {}", self._place, error.message)
        return self._dialects[model] != used

    async def _post(self, body: bytes) -> httpx2.Response:
        """Send a body as it is; `cast_to` a raw response makes the SDK hand it over unread."""
        try:
            response = await self._sdk.post(
                self._url,
                content=body,
                cast_to=httpx2.Response,
                stream=True,
                stream_cls=self._stream_class,
            )
        except self._status_error as error:
            # `from None`: the SDK's error quotes the body, which may quote the key.
            raise model_error(read_refusal(error.response), self._place) from None
        except self._connection_error as error:
            raise connection_error(error, self._place) from error
        # The SDK's types promise a stream object; with this `cast_to` it returns the response itself.
        return cast("httpx2.Response", response)
