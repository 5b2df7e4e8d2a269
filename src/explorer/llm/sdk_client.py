"""The base of the adapters: a vendor's SDK, imported in part and opened over the engine's own connections.

An SDK's package imports every type of every endpoint: 0.3 s of CPU for OpenAI's, 0.5 s for Anthropic's, and a request
of ours needs hardly any of them. Here a package of an SDK is imported without running its `__init__`: a name of it is
looked up when it is first asked for. So a program that uses the SDK itself finds everything where it is documented.

The SDKs of the vendors are made by one generator, so they have the same names for the same things. An adapter derives
from `SdkClient`, and writes requests and reads replies in its vendor's form; nothing here depends on the vendor.

An SDK makes each request from options, defaults and an address that never change; that takes longer than all of the
engine's own work on a turn. So the SDK sends the first body, and each later one is sent in the request that the SDK
made for the first: the same address, headers and credentials, over the same connections.
"""

import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from threading import RLock
from types import ModuleType
from typing import Any, Protocol, Self, cast

import httpx2

from explorer.llm.faults import model_error, read_refusal
from explorer.llm.foreign_answers import connection_error, transport_errors, was_unsent
from explorer.llm.guards import guards
from explorer.llm.options import BOUNDS, ClientOptions, Endpoint, ReplyBounds, ReplyMeter, key_text
from explorer.llm.prices import cost_usd
from explorer.llm.streaming import Reply, http_client, stream_reply
from explorer.schema.messages import Request, Turn

RE_EXPORT = re.compile(r"^from (\.\w+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
"""A line of an `__init__` that only exports names of a module of the package again."""


def sdk_part(package: str, module: str, name: str) -> Any:  # noqa: ANN401 - whatever the SDK has there
    """Return a name of an SDK.

    Args:
        package: The SDK's name.
        module: The module of the SDK that defines the name; private modules may move.
        name: One that the SDK's package exports, too.
    """
    finder = _Finder(package)
    sys.meta_path.insert(0, finder)
    try:
        return getattr(import_module(f"{package}.{module}"), name)
    except (ImportError, AttributeError):
        return getattr(import_module(package), name)
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    """Finds the SDK's package and those of its types, to be loaded on demand."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how such a package is loaded; None for every other module."""
        if name not in {self._package, f"{self._package}.lib"} and not f"{name}.".startswith(f"{self._package}.types."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.submodule_search_locations is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        spec.loader = _OnDemand(spec.loader.name, spec.loader.path)
        return spec


class _OnDemand(SourceFileLoader):
    """Loads a package whose `__init__` runs when a name is asked for that no module below it has."""

    def __init__(self, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._lock = RLock()
        self._is_run = False
        self._first = frozenset[str]()
        """Names that the empty module has."""

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module empty, with a way to its names."""

        def look_up(name: str) -> object:
            with self._lock:
                if name in vars(module):
                    return vars(module)[name]
                value = self._value(module, name)
                setattr(module, name, value)
                return value

        def listed() -> list[str]:
            with self._lock:
                self._run(module)
            return sorted(vars(module))

        vars(module).update(__getattr__=look_up, __dir__=listed)
        self._first = frozenset(vars(module))

    def _value(self, module: ModuleType, name: str) -> object:
        """Return the value of a name.

        Raises:
            AttributeError: There is nothing.
        """
        if name in self._re_exports:
            place, original = self._re_exports[name]
            return getattr(import_module(place, self.name), original)
        if find_spec(f"{self.name}.{name}"):
            return import_module(f"{self.name}.{name}")
        self._run(module)
        if name not in vars(module):
            raise AttributeError(f"module {self.name!r} has no attribute {name!r}")
        return vars(module)[name]

    def _run(self, module: ModuleType) -> None:
        """Run the `__init__`, once; what a program has set in the package meanwhile, such as a key, stays."""
        if not self._is_run:
            self._is_run = True
            was_set = {name: value for name, value in vars(module).items() if name not in self._first}
            super().exec_module(module)
            vars(module).update(was_set)

    @cached_property
    def _re_exports(self) -> Mapping[str, tuple[str, str]]:
        """The module and the name there of each re-exported name. A whole SDK's `__init__` does more than that."""
        if "." not in self.name:
            return {}
        places: dict[str, tuple[str, str]] = {}
        for place, several, one in RE_EXPORT.findall(self.get_source(self.name) or ""):
            for words in (several or one).split(","):
                original, _, given = words.strip().partition(" as ")
                places[given or original] = (place, original)
        return places


OWN_TO_EACH = frozenset({b"content-length", b"idempotency-key"})
"""Headers that are not reused for another body: it has another length, and is not a repetition."""

LARGE_BODY_BYTES = 1024 * 1024
"""The size from which aiohttp warns that a body sent at once may block the event loop."""
PIECE_BYTES = 256 * 1024


async def _pieces(body: bytes) -> AsyncGenerator[bytes]:
    view = memoryview(body)
    for start in range(0, len(body), PIECE_BYTES):
        yield bytes(view[start : start + PIECE_BYTES])


class RequestTemplate:
    """Sends one adapter's requests.

    Args:
        first: Sends a body through the SDK and returns the raw response; its errors are `ModelError`.
        client: The client that the SDK sends over.
        endpoint: The server; requests to another one are refused.
        bounds: The most that is read of an answer.
    """

    def __init__(
        self,
        first: Callable[[bytes], Awaitable[httpx2.Response]],
        client: httpx2.AsyncClient,
        endpoint: Endpoint,
        bounds: ReplyBounds = BOUNDS,
    ) -> None:
        client.event_hooks = guards(endpoint, bounds)
        self._first = first
        self._client = client
        self._endpoint = endpoint
        self._made: httpx2.Request | None = None
        self._headers = httpx2.Headers()
        self._failures = transport_errors()

    async def post(self, body: bytes) -> httpx2.Response:
        """Send a body; the caller reads and closes the response.

        Raises:
            ModelError: No connection, or the answer has an error status.
        """
        if self._made is None:
            return await self._post_first(body)
        try:
            response = await self._send(self._made, body)
            if response.is_error:
                await response.aread()
        except self._failures as error:
            raise connection_error(error, self._endpoint) from error
        if response.is_error:
            raise model_error(read_refusal(response), self._endpoint)
        return response

    async def _send(self, made: httpx2.Request, body: bytes) -> httpx2.Response:
        """Send a body in the first request's form; send it again when the connection was closed before.

        llama.cpp's server promises to keep a connection, but closes it after each stream: nothing was sent then.
        """
        try:
            return await self._client.send(self._request(made, body), stream=True)
        except self._failures as error:
            if not was_unsent(error):
                raise
        return await self._client.send(self._request(made, body), stream=True)

    def _request(self, made: httpx2.Request, body: bytes) -> httpx2.Request:
        """Make the request for a body; a large one is passed in pieces, so that the event loop is not blocked."""
        if len(body) > LARGE_BODY_BYTES:
            headers = [*self._headers.raw, (b"content-length", str(len(body)).encode())]
            return httpx2.Request("POST", made.url, headers=headers, content=_pieces(body), extensions=made.extensions)
        # With a stream in place of the content, and headers that are read already, a request takes a third of the time.
        stream, extensions = httpx2.ByteStream(body), made.extensions
        request = httpx2.Request("POST", made.url, headers=self._headers, stream=stream, extensions=extensions)
        request.headers.encoding = self._headers.encoding
        request.headers["content-length"] = str(len(body))
        request.read()
        return request

    async def _post_first(self, body: bytes) -> httpx2.Response:
        try:
            response = await self._first(body)
        except self._failures as error:
            raise connection_error(error, self._endpoint) from error
        self._keep(response)
        return response

    def _keep(self, response: httpx2.Response) -> None:
        if response.history:
            return  # it was redirected, which the SDK's client does each time
        made = response.request
        self._headers = httpx2.Headers([one for one in made.headers.raw if one[0].lower() not in OWN_TO_EACH])
        self._made = made


class SdkConnection(Protocol):
    """The used part of an SDK's client, which adds headers, credentials and address."""

    @property
    def base_url(self) -> httpx2.URL:
        """The base URL."""
        ...

    @property
    def post(self) -> Callable[..., Any]:
        """The method that sends a body and returns an awaitable."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class _Refused(Protocol):
    """An SDK's error for an error status."""

    @property
    def response(self) -> httpx2.Response: ...


@dataclass(frozen=True, slots=True)
class Sdk:
    """The used parts of one vendor's SDK, imported when an adapter is opened, because that is slow."""

    connect: Callable[..., SdkConnection]
    """The SDK's client class."""
    over_aiohttp: type[httpx2.AsyncClient]
    stream_class: type
    status_error: type[Exception]
    """The error for an error status; it has the response."""
    connection_error: type[Exception]

    @classmethod
    def imported(cls, package: str, client: str) -> "Sdk":
        """Import what is needed of an SDK, and no more; `client` is the name of its client class."""
        part = partial(sdk_part, package)
        return cls(
            part("_client", client),
            part("_base_client", "DefaultAioHttpClient"),
            part("_streaming", "AsyncStream"),
            part("_exceptions", "APIStatusError"),
            part("_exceptions", "APIConnectionError"),
        )


class SdkClient:
    """The base of an adapter. It has one connection pool; close it with `async with` or `aclose`.

    Args:
        options: How to reach the provider.
        endpoint: The server, for error messages.
        sdk: The vendor's SDK.
        path: The path of the API under the base URL.

    Raises:
        CredentialsError: The key has characters that no key has.
    """

    def __init__(self, options: ClientOptions, endpoint: Endpoint, sdk: Sdk, path: str) -> None:
        self._options = options
        self._endpoint = endpoint
        client = http_client(endpoint, options, sdk.over_aiohttp)
        # Key and URL are always given, or the SDK would look for its own in the environment and on disk.
        self._connection = sdk.connect(
            api_key=key_text(options.key, endpoint.key_setting),
            base_url=endpoint.base_url,
            max_retries=0,
            http_client=client,
        )
        self._sdk = sdk
        # The whole URL, so that the SDK does not make it for every request.
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
        """Return the meter for a reply."""
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
        """Send a body through the SDK; `cast_to` a raw response makes the SDK return it unread."""
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
        """Send a request once."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class LateClient:
    """A client that is made at its first request: importing a vendor's SDK can take a second.

    Args:
        make: Returns the adapter, with its SDK.
    """

    def __init__(self, make: Callable[[], Adapter]) -> None:
        self._make = make
        self._adapter: Adapter | None = None

    async def __aenter__(self) -> Self:
        """Return the client; nothing is imported yet."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Close the adapter, if it was made."""
        if self._adapter is not None:
            await self._adapter.aclose()

    async def generate(self, request: Request) -> Turn:
        """Send a request once.

        Raises:
            ModelError: No turn came.
        """
        if self._adapter is None:
            self._adapter = self._make()
        return await self._adapter.generate(request)
