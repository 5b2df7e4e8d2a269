"""The edge to Tavily's SDK: one session, its answers and its errors as types of ours."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from explorer.messages import JsonObject

MAX_RETRY_AFTER_S = 5.0
OK = 200
TOO_MANY = 429
SERVER_ERROR = 500


class TavilyResult(BaseModel):
    """One result as Tavily gives it."""

    model_config = ConfigDict(extra="ignore")

    url: str = ""
    title: str | None = None
    content: str | None = None
    score: float | None = None
    published_date: str | None = None


class TavilyAnswer(BaseModel):
    """The body of a search."""

    model_config = ConfigDict(extra="ignore")

    results: list[TavilyResult] = []


class KeylessProblem(BaseModel):
    """The body of a keyless refusal: `{"error": {...}}`."""

    model_config = ConfigDict(extra="ignore")

    code: str | None = None
    message: str | None = None
    window: str | None = None
    retry_after_seconds: float | None = None


class Refusal(BaseModel):
    """Any error body: keyless ones have `error`, keyed ones `detail.error`."""

    model_config = ConfigDict(extra="ignore")

    error: KeylessProblem | None = None
    detail: Any = None

    @property
    def words(self) -> str:
        """What it says, if anything."""
        if self.error and self.error.message:
            return self.error.message
        if isinstance(self.detail, dict):
            return str(self.detail.get("error") or "")  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - foreign JSON
        return str(self.detail or "")


class RefusedError(Exception):
    """An answer of Tavily's other than 200, before its SDK sorts it (and mistakes some)."""

    def __init__(self, status: int, refusal: Refusal, retry_after: str) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.words = " ".join(refusal.words.split())[:300]
        self.window = refusal.error.window if refusal.error else None
        self.retry_after_s = refusal.error.retry_after_seconds if refusal.error else None
        if self.retry_after_s is None and retry_after.isdecimal():
            self.retry_after_s = float(retry_after)

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed within seconds."""
        if self.status == TOO_MANY:
            return self.retry_after_s is not None and self.retry_after_s <= MAX_RETRY_AFTER_S
        return self.status >= SERVER_ERROR


class UnreachableError(Exception):
    """No usable answer came at all."""

    def __init__(self, words: str, *, is_retryable: bool = True) -> None:
        super().__init__(words)
        self.is_retryable = is_retryable


class TavilySession:
    """The SDK's client on an HTTP client of its own, which nobody else uses: the SDK writes its key into it.

    The client ignores the environment's proxies, as all our fetching does, and reads error answers before the SDK
    does, which drops what they say and fails on a status like 201.
    """

    def __init__(self, key: str, url: str) -> None:
        import httpx  # noqa: PLC0415 - SDKs are slow to import
        import tavily  # noqa: PLC0415 - SDKs are slow to import

        access = {} if key else {"X-Tavily-Access-Mode": "keyless"}
        self._http = httpx.AsyncClient(
            base_url=url, trust_env=False, headers=access, event_hooks={"response": [_refuse]}
        )
        # An empty key, not None: None would be looked up in the environment.
        self._tavily = tavily.AsyncTavilyClient(
            api_key=key,
            api_base_url=url,
            client=self._http,
            client_source="tavily-python" if key else "tavily-python-keyless",
        )

    async def ask(self, query: str, parameters: JsonObject, timeout_s: float) -> TavilyAnswer:
        """Search once.

        Raises:
            RefusedError: An answer other than 200.
            UnreachableError: No answer, or one that is not what the contract says.
        """
        import httpx  # noqa: PLC0415 - imported by now
        import tavily.errors  # noqa: PLC0415 - imported by now

        try:
            answer: object = await self._tavily.search(query, timeout=timeout_s, **parameters)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - untyped SDK
            return TavilyAnswer.model_validate(answer)
        except tavily.errors.TimeoutError as error:
            raise UnreachableError(f"did not answer within {timeout_s:g} s") from error
        except httpx.TransportError as error:
            raise UnreachableError(f"cannot be reached ({error or type(error).__name__})") from error
        except (ValidationError, ValueError, TypeError, AttributeError) as error:
            raise UnreachableError("sent something unexpected", is_retryable=False) from error

    async def aclose(self) -> None:
        """Close all connections."""
        await self._tavily.close()
        await self._http.aclose()


async def _refuse(response: Any) -> None:  # noqa: ANN401 - httpx's type is imported lazily
    """Turn any answer but 200 into our own error, with all that its body tells."""
    if response.status_code == OK:
        return
    body = await response.aread()
    try:
        refusal = Refusal.model_validate_json(body)
    except ValidationError:
        refusal = Refusal()
    raise RefusedError(response.status_code, refusal, response.headers.get("retry-after", ""))
