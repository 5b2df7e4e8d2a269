"""The adapter for OpenAI's Responses API, on the official SDK's transport, authentication and error mapping."""

from typing import Any, Self, cast

import httpx2

from explorer.errors import ModelError
from explorer.llm.bound_reasoning import BoundReasoning
from explorer.llm.bounds import ReplyMeter
from explorer.llm.exchange import converse, http_client
from explorer.llm.faults import model_error, read_refusal
from explorer.llm.foreign_answers import connection_error
from explorer.llm.frozen_head import FrozenHeads
from explorer.llm.hosts import is_official
from explorer.llm.openai_responses_reply import ResponsesReply
from explorer.llm.openai_responses_request import PROVIDER, is_reasoning, to_head, to_input, to_rest
from explorer.llm.options import ClientOptions, Place, key_text
from explorer.llm.prices import cost_usd
from explorer.llm.sending import Sender
from explorer.messages import Request, Turn

DEFAULT_URL = "https://api.openai.com/v1"

NO_REASONING = "encrypted content is not supported"
"""What a model without reasoning is refused with when its encrypted reasoning is asked for."""


class ResponsesClient:
    """Asks OpenAI's models through the API made for models that reason and call tools.

    Nothing is stored at the vendor: each request holds the whole conversation, and the encrypted reasoning in it.
    One connection pool per adapter; close it with `async with` or `aclose`.
    """

    def __init__(self, options: ClientOptions) -> None:
        import openai  # noqa: PLC0415 - SDKs are slow to import

        base_url = options.base_url or DEFAULT_URL
        self._options = options
        self._is_official = is_official(base_url)
        self._heads = FrozenHeads(to_head)
        self._reasoning = BoundReasoning(PROVIDER)
        self._without_reasoning: set[str] = set()
        """Models that do not reason."""
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
        self._url = f"{str(self._sdk.base_url).rstrip('/')}/responses"
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
        """Ask once, or once more without what the server says it cannot take, and return the complete turn.

        Raises:
            ModelError: No turn came; nothing of the attempt may be used.
        """
        try:
            return await self._ask(request)
        except ModelError as error:
            if not self._learn(request, error):
                raise
        return await self._ask(request)

    def _learn(self, request: Request, error: ModelError) -> bool:
        """Take note of what a server refuses; whether asking again without it makes sense."""
        if NO_REASONING in error.message.lower() and request.model not in self._without_reasoning:
            self._without_reasoning.add(request.model)
            return True
        return False

    async def _ask(self, request: Request) -> Turn:
        meter = ReplyMeter(self._place, request.max_output_tokens, self._options.bounds)
        reply = ResponsesReply(self._place, meter)
        bound = self._reasoning.before(request)
        history = to_input(request, bound.kept)
        rest = to_rest(request, wants_reasoning=request.model not in self._without_reasoning)
        body = self._heads.body(request, history, rest)
        await converse(self._sender.post, body, reply, self._place, self._options.timeouts)
        turn = reply.turn(request.model)
        if any(is_reasoning(block) for block in turn.blocks):
            turn = turn.model_copy(update={"bound_to": bound.digest})
        # Another server sets its own prices, whatever its models are called.
        priced_as = "openai" if self._is_official else "other"
        cost = cost_usd(request.model, priced_as, turn.usage, self._options.price)
        return turn if cost is None else turn.model_copy(update={"cost_usd": cost})

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
