"""The edge to Tavily's SDK: one session, its answers and its errors as types of ours."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from explorer.schema.messages import JsonObject
from explorer.sources.http.api_client import ApiClient, ApiRules, UnreachableError

HEADERS_PASSED = ("authorization", "content-type", "x-")


class TavilyResult(BaseModel):
    """One result as Tavily gives it."""

    model_config = ConfigDict(extra="ignore")

    url: str = ""
    title: str | None = None
    content: str | None = None
    raw_content: str | None = None
    score: float | None = None
    published_date: str | None = None


class TavilyAnswer(BaseModel):
    """The body of a search."""

    model_config = ConfigDict(extra="ignore")

    results: list[TavilyResult] = []


class TavilySession:
    """The SDK's client over our own calls, which nobody else uses: the SDK writes its key into its HTTP client.

    So the guard, the limits and the retries are those of every other service, and an answer other than 200 is
    judged by us: the SDK drops what some of them say, and fails on a status like 201.

    Raises:
        UnreachableError: The address or the key cannot be used.
    """

    def __init__(self, key: str, url: str, rules: ApiRules) -> None:
        import httpx  # noqa: PLC0415 - SDKs are slow to import
        import tavily  # noqa: PLC0415 - SDKs are slow to import

        calls = self._calls = ApiClient(url, {}, secret=key, rules=rules)
        calls.check()

        class Through(httpx.AsyncBaseTransport):
            """What the SDK asks for goes the way of all calls."""

            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                headers = {name: value for name, value in request.headers.items() if name.startswith(HEADERS_PASSED)}
                body = await calls.post_as_it_is("/search", await request.aread(), headers)
                return httpx.Response(200, content=body)

        access = {} if key else {"X-Tavily-Access-Mode": "keyless"}
        self._http = httpx.AsyncClient(base_url=url, trust_env=False, headers=access, transport=Through())
        # An empty key, not None: None would be looked up in the environment.
        self._tavily = tavily.AsyncTavilyClient(
            api_key=key,
            api_base_url=url,
            client=self._http,
            client_source="tavily-python" if key else "tavily-python-keyless",
        )

    async def ask(self, query: str, parameters: JsonObject) -> TavilyAnswer:
        """Search.

        Raises:
            CallError: No answer, a refusal, or something that is not what the contract says.
        """
        try:
            answer: Any = await self._tavily.search(query, **parameters)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped SDK
            return TavilyAnswer.model_validate(answer)
        except (ValidationError, ValueError, TypeError, AttributeError) as error:
            raise UnreachableError("sent something unexpected") from error

    async def aclose(self) -> None:
        """Close all connections."""
        await self._tavily.close()
        await self._http.aclose()
        await self._calls.aclose()
