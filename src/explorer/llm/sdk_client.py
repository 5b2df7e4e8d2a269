"""What all adapters share: a vendor's SDK, opened over the engine's own connections, and one request through it.

The SDKs of the vendors are made by one generator, so they have the same names for the same things. An adapter derives
from `SdkClient` and writes requests and reads replies in its vendor's words; nothing here depends on the vendor.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast

import httpx2

from explorer.llm.bounds import ReplyMeter
from explorer.llm.faults import model_error, read_refusal
from explorer.llm.foreign_answers import connection_error
from explorer.llm.options import ClientOptions, Endpoint, key_text
from explorer.llm.prices import cost_usd
from explorer.llm.request_template import RequestTemplate
from explorer.llm.streaming import Reply, http_client, stream_reply
from explorer.schema.messages import Request, Turn


class SdkConnection(Protocol):
    """An SDK's client, as far as it is used: it adds the headers, the credentials and the address."""

    @property
    def base_url(self) -> httpx2.URL:
        """The address that paths are added to."""
        ...

    @property
    def post(self) -> Callable[..., Any]:
        """Send a body; returns an awaitable."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class _Refused(Protocol):
    """An SDK's error for an answer with an error status."""

    @property
    def response(self) -> httpx2.Response: ...


@dataclass(frozen=True, slots=True)
class Sdk:
    """The parts of one vendor's SDK, taken when an adapter is opened: importing an SDK is slow."""

    connect: Callable[..., SdkConnection]
    """The SDK's client class."""
    over_aiohttp: type[httpx2.AsyncClient]
    stream_class: type
    status_error: type[Exception]
    """What an answer with an error status raises; it has the response."""
    connection_error: type[Exception]


class SdkClient:
    """The base of an adapter. It has one connection pool; close it with `async with` or `aclose`.

    Args:
        options: How to reach the provider.
        endpoint: The same in words, for errors.
        sdk: The vendor's SDK.
        path: Where requests go, below the base URL.

    Raises:
        CredentialsError: The key holds characters that no key has.
    """

    def __init__(self, options: ClientOptions, endpoint: Endpoint, sdk: Sdk, path: str) -> None:
        self._options = options
        self._endpoint = endpoint
        client = http_client(endpoint.base_url, options, sdk.over_aiohttp)
        # Key and URL are always given, or the SDK would look for its own in the environment and on disk.
        self._connection = sdk.connect(
            api_key=key_text(options.key, endpoint.key_setting),
            base_url=endpoint.base_url,
            max_retries=0,
            http_client=client,
        )
        self._sdk = sdk
        # Whole, so that the SDK need not put it together for every request.
        self._url = f"{str(self._connection.base_url).rstrip('/')}{path}"
        self._sender = RequestTemplate(self._post, client, endpoint, options.bounds)

    async def __aenter__(self) -> Self:
        """Return the client, which is open from the start."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close the connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.close()

    def _meter(self, request: Request) -> ReplyMeter:
        """Count what a reply keeps."""
        return ReplyMeter(self._endpoint, request.max_output_tokens, self._options.bounds)

    async def _exchange(self, body: bytes, reply: Reply) -> None:
        """Send one request, once, and let `reply` collect its stream.

        Raises:
            ModelError: No complete reply came.
        """
        await stream_reply(self._sender.post, body, reply, self._endpoint, self._options.timeouts)

    def _priced(self, turn: Turn, request: Request, provider: str) -> Turn:
        """Return a turn with its cost, where the model's price is known."""
        cost = cost_usd(request.model, provider, turn.usage, self._options.price)
        return turn if cost is None else turn.model_copy(update={"cost_usd": cost})

    async def _post(self, body: bytes) -> httpx2.Response:
        """Send a body as it is; `cast_to` a raw response makes the SDK hand it over unread."""
        try:
            response = await self._connection.post(
                self._url,
                content=body,
                cast_to=httpx2.Response,
                stream=True,
                stream_cls=self._sdk.stream_class,
            )
        except self._sdk.status_error as error:
            # `from None`: the SDK's error quotes the body, which may quote the key.
            raise model_error(read_refusal(cast("_Refused", error).response), self._endpoint) from None
        except self._sdk.connection_error as error:
            raise connection_error(error, self._endpoint) from error
        # The SDK's types promise a stream object; with this `cast_to` it returns the response itself.
        return cast("httpx2.Response", response)


class Adapter(Protocol):
    """A vendor's client that can be closed."""

    async def generate(self, request: Request) -> Turn:
        """Ask once."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class LateClient:
    """A client that is made when it is first asked: importing a vendor's SDK can take a second.

    Args:
        make: Makes the adapter, with its SDK.
    """

    def __init__(self, make: Callable[[], Adapter]) -> None:
        self._make = make
        self._adapter: Adapter | None = None

    async def __aenter__(self) -> Self:
        """Return the client; nothing is imported yet."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close the adapter, if there is one."""
        if self._adapter is not None:
            await self._adapter.aclose()

    async def generate(self, request: Request) -> Turn:
        """Ask once.

        Raises:
            ModelError: No turn came.
        """
        if self._adapter is None:
            self._adapter = self._make()
        return await self._adapter.generate(request)
