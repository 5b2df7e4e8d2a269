"""Searches with Tavily's SDK, with a key or in its keyless mode."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, LiteralString

from pydantic import SecretStr, ValidationError

from explorer.schema.messages import JsonObject
from explorer.schema.setting import ExtensionSettings, address_of, key_of
from explorer.sources.http.api_client import (
    TOO_MANY,
    ApiClient,
    ApiRules,
    CallError,
    ServiceRefusedError,
    UnreachableError,
)
from explorer.sources.http.wire import WireModel
from explorer.sources.search.port import (
    LONG_REST_S,
    SearchAccess,
    SearchEngine,
    SearchFailedError,
    WebAnswer,
    WebHit,
    WebQuery,
    WebSearch,
    answered,
    failure,
    iso_date,
    page_text,
)
from explorer.text.rendering import own
from explorer.text.sanitize import single_line

HEADERS_PASSED = ("authorization", "content-type", "x-")


class TavilyResult(WireModel):
    """A result in Tavily's answer."""

    url: str = ""
    title: str | None = None
    content: str | None = None
    raw_content: str | None = None
    score: float | None = None
    published_date: str | None = None


class TavilyAnswer(WireModel):
    """The answer to a search."""

    results: tuple[TavilyResult, ...] = ()


class TavilySession:
    """The SDK's client over the guarded calls, shared with nobody: the SDK writes its key into its HTTP client.

    So the guard, the limits and the retries of every other service apply, and an answer other than 200 is judged here:
    the SDK drops the text of some, and fails on a status like 201.

    Raises:
        UnreachableError: The address or the key cannot be used.
    """

    def __init__(self, key: str, url: str, rules: ApiRules) -> None:
        import httpx  # noqa: PLC0415 - SDKs are slow to import
        import tavily  # noqa: PLC0415 - SDKs are slow to import

        calls = self._calls = ApiClient(url, {}, secret=key, rules=rules)
        calls.check()

        class Through(httpx.AsyncBaseTransport):
            """Sends the SDK's requests as calls of the service."""

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


RULES = ApiRules(seconds=40.0, body_bytes=32_000_000, is_billed=True)
"""The rules for calls, which take long: Tavily reads the pages that it finds, and sends their text."""
REFUSALS: Mapping[int, LiteralString] = {
    401: "did not accept its key (TAVILY_API_KEY)",
    432: "is over its plan's limit",
    433: "is over its pay-as-you-go limit",
}


class KeylessProblem(WireModel):
    """The content of `error` in a keyless refusal, next to its message."""

    window: str | None = None
    retry_after_seconds: float | None = None


class TavilySearch(WebSearch):
    """Searches with Tavily's SDK; without a key in its keyless mode, which has a limit of its own."""

    def __init__(self, key: str, url: str, *, rules: ApiRules = RULES) -> None:
        # Results show how they were come by.
        self.name = "tavily" if key else "tavily-keyless"
        self._key = key
        self._url = url.rstrip("/")
        self._rules = rules
        self._session: TavilySession | None = None

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session:
            await self._session.aclose()
            self._session = None

    async def search(self, query: WebQuery) -> WebAnswer:
        """Search, with the text of the pages found.

        Raises:
            SearchFailedError: No answer came.
        """
        try:
            if self._session is None:
                self._session = TavilySession(self._key, self._url, self._rules)
            answer = await self._session.ask(query.words, _parameters(query))
        except CallError as error:
            raise self._failed(error) from error
        return answered(query, self.name, map(_hit, answer.results), dates_by_engine=True)

    def _failed(self, error: CallError) -> SearchFailedError:
        if self._key or not isinstance(error, ServiceRefusedError) or error.status != TOO_MANY:
            return failure(self.name, error, REFUSALS)
        try:
            problem = KeylessProblem.model_validate(error.fields.get("error"))
        except ValidationError:
            problem = KeylessProblem()
        window = own(" ({window} window)", window=problem.window) if problem.window else own("")
        wait = error.retry_after_s if problem.retry_after_seconds is None else problem.retry_after_seconds
        again = own("; it opens again in {wait:g} s", wait=wait) if wait else own("")
        rest = LONG_REST_S if wait is None else wait
        clause = own("is over its keyless cap{window}{again}", window=window, again=again)
        hint = "set TAVILY_API_KEY (a free key has 1,000 credits a month)"
        return SearchFailedError(self.name, clause, stated=error.stated, rest_s=rest, hint=hint)


def _hit(result: TavilyResult) -> WebHit:
    text, flags = page_text(result.raw_content)
    return WebHit(
        title=single_line(result.title or result.url),
        url=result.url,
        snippet=(result.content or "").strip(),
        published=iso_date(result.published_date or "", datetime.now(UTC)),
        score=result.score,
        text=text,
        flags=flags,
    )


def _parameters(query: WebQuery) -> JsonObject:
    """Return the fields of Tavily's request; the service's defaults apply to absent ones."""
    parameters: JsonObject = {
        "search_depth": "advanced" if query.depth == "advanced" else "basic",
        "max_results": query.max_results,
        "include_raw_content": "markdown",
        "include_domains": list(query.include_domains),
        "exclude_domains": list(query.exclude_domains),
        "start_date": query.since,
    }
    return {name: value for name, value in parameters.items() if value}


class TavilySettings(ExtensionSettings):
    """The address of Tavily's API, and the key for it."""

    url: Annotated[str, address_of("EXPLORER_TAVILY_URL", "Tavily's API")] = "https://api.tavily.com"
    key: Annotated[
        SecretStr, key_of("TAVILY_API_KEY", "Key for Tavily's web search; without one its keyless mode is used")
    ] = SecretStr("")


def _open(settings: TavilySettings, access: SearchAccess) -> WebSearch:
    return TavilySearch(settings.key.get_secret_value(), settings.url, rules=access.rules(RULES))


ENGINE = SearchEngine("tavily", TavilySettings, _open, needs="key", without_name="tavily-keyless")
