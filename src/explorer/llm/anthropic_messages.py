"""The adapter for Anthropic's Messages API, on the official SDK's transport, authentication and error mapping."""

from typing import Any, Self, cast

import httpx2

from explorer.llm.anthropic_reply import AnthropicReply
from explorer.llm.anthropic_request import PROVIDER, REASONING, to_head, to_messages, to_rest
from explorer.llm.bound_reasoning import BoundReasoning
from explorer.llm.bounds import ReplyMeter
from explorer.llm.exchange import converse, http_client
from explorer.llm.faults import model_error, read_refusal
from explorer.llm.foreign_answers import connection_error
from explorer.llm.frozen_head import FrozenHeads
from explorer.llm.options import ClientOptions, Place, key_text
from explorer.llm.prices import cost_usd
from explorer.llm.sending import Sender
from explorer.messages import Request, Turn

DEFAULT_URL = "https://api.anthropic.com"


class AnthropicClient:
    """Asks Claude models. One connection pool per adapter; close it with `async with` or `aclose`.

    The SDK's typed calls and its stream helper are not used: they walk the whole history at every turn, and the
    helper repairs cut-off arguments and takes a stream without an end for a success.
    """

    def __init__(self, options: ClientOptions) -> None:
        import anthropic  # noqa: PLC0415 - SDKs are slow to import

        base_url = options.base_url or DEFAULT_URL
        self._options = options
        self._heads = FrozenHeads(to_head)
        self._reasoning = BoundReasoning(PROVIDER)
        self._place = Place(
            "Anthropic", base_url, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", options.key, options.network
        )
        client = http_client(base_url, options, anthropic.DefaultAioHttpClient)
        # Key and URL are always given, or the SDK would look for its own in the environment and on disk.
        self._sdk = anthropic.AsyncAnthropic(
            api_key=key_text(options.key, self._place.key_setting),
            base_url=base_url,
            max_retries=0,
            http_client=client,
        )
        # Whole, so that the SDK need not put it together for every request.
        self._url = f"{str(self._sdk.base_url).rstrip('/')}/v1/messages"
        self._stream_class = anthropic.AsyncStream[Any]
        self._status_error = anthropic.APIStatusError
        self._sender = Sender(self._post, client, self._place, options.bounds)
        self._connection_error = anthropic.APIConnectionError

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
        meter = ReplyMeter(self._place, request.max_output_tokens, self._options.bounds)
        reply = AnthropicReply(self._place, meter)
        bound = self._reasoning.before(request)
        body = self._heads.body(request, to_messages(request, bound.kept), to_rest(request))
        await converse(self._sender.post, body, reply, self._place, self._options.timeouts)
        turn = reply.turn(request.model)
        if reply.has_true_reasoning and any(block.get("type") in REASONING for block in turn.blocks):
            turn = turn.model_copy(update={"bound_to": bound.digest})
        cost = cost_usd(request.model, PROVIDER, turn.usage, self._options.price)
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
