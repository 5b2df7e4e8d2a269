"""Brave's search API: a key, one call at a time."""

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

from pydantic import SecretStr

from explorer.schema.setting import ExtensionSettings, address_of, key_of
from explorer.sources.http.api_client import ApiClient, ApiRules, CallError, ServiceRefusedError, parsed
from explorer.sources.http.wire import WireModel
from explorer.sources.search.port import (
    ApiSearch,
    SearchAccess,
    SearchEngine,
    WebAnswer,
    WebHit,
    WebQuery,
    WebSearch,
    Window,
    answered,
    failure,
    iso_date,
    window,
    with_sites,
)

PATH = "/res/v1/web/search"
MAX_RESULTS = 20
RULES = ApiRules(in_flight=1, is_billed=True)
"""The rules for calls, which are sent one after another because small plans allow one request a second."""
FRESHNESS: dict[Window, str] = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}
KEY_REFUSED = "did not accept its key (BRAVE_API_KEY)"
UNPROCESSABLE = 422
MARK_UP = re.compile(r"</?[a-z][^>]{0,100}>", re.IGNORECASE)


class BraveResult(WireModel):
    """A result in Brave's answer."""

    title: str | None = None
    url: str = ""
    description: str | None = None
    age: str | None = None
    page_age: str | None = None
    extra_snippets: list[str] | None = None


class BraveResults(WireModel):
    """The web results of Brave's answer."""

    results: tuple[BraveResult, ...] = ()


class BraveAnswer(WireModel):
    """The answer to a search; `web` is missing when nothing is found."""

    web: BraveResults | None = None


class BraveSearch(ApiSearch):
    """Searches with Brave's API."""

    name = "brave"

    def __init__(
        self,
        key: str,
        url: str,
        *,
        rules: ApiRules = RULES,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._now = now
        headers = {"X-Subscription-Token": key}
        super().__init__(ApiClient(url, headers, secret=key, rules=rules))

    async def search(self, query: WebQuery) -> WebAnswer:
        """Search; the query contains the sites, and Brave's coarse windows replace dates.

        Raises:
            SearchFailedError: No answer came.
        """
        parameters = {
            "q": with_sites(query),
            "count": str(min(query.max_results, MAX_RESULTS)),
            "text_decorations": "false",
        }
        if reach := window(query.since, self._now()):
            parameters["freshness"] = FRESHNESS[reach]
        try:
            answer = parsed(BraveAnswer, await self._call.get(PATH, parameters))
        except CallError as error:
            # Of the key is said with the status of a query that is not accepted.
            is_key = isinstance(error, ServiceRefusedError) and "TOKEN" in str(error.fields).upper()
            raise failure(
                self.name, error, {401: KEY_REFUSED, **({UNPROCESSABLE: KEY_REFUSED} if is_key else {})}
            ) from error
        results = answer.web.results if answer.web else ()
        return answered(query, self.name, map(self._hit, results))

    def _hit(self, result: BraveResult) -> WebHit:
        passages = [result.description or "", *(result.extra_snippets or [])]
        return WebHit(
            title=_plain(result.title or result.url),
            url=result.url,
            snippet="\n".join(plain for passage in passages if (plain := _plain(passage))),
            published=iso_date(result.page_age or result.age or "", self._now()),
        )


def _plain(text: str) -> str:
    """Return text on one line, without the marks around found words and without entities."""
    return " ".join(html.unescape(MARK_UP.sub("", text)).split())


class BraveSettings(ExtensionSettings):
    """The address of Brave's search API, and the key for it."""

    url: Annotated[str, address_of("EXPLORER_BRAVE_URL", "Brave's search API")] = "https://api.search.brave.com"
    key: Annotated[SecretStr, key_of("BRAVE_API_KEY", "Key for Brave's web search")] = SecretStr("")


def _open(settings: BraveSettings, access: SearchAccess) -> WebSearch:
    return BraveSearch(settings.key.get_secret_value(), settings.url, rules=access.rules(RULES))


ENGINE = SearchEngine("brave", BraveSettings, _open, needs="key")
