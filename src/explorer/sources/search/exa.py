"""Exa's search API: a key, and the text of the pages found."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, LiteralString

from pydantic import SecretStr

from explorer.schema.messages import JsonObject
from explorer.schema.setting import ExtensionSettings, address_of, key_of
from explorer.sources.http.api_client import ApiClient, ApiRules, CallError, parsed
from explorer.sources.http.wire import WireModel
from explorer.sources.search.port import (
    PAGE_TEXT_CHARS,
    ApiSearch,
    SearchAccess,
    SearchEngine,
    WebAnswer,
    WebHit,
    WebQuery,
    WebSearch,
    answered,
    failure,
    iso_date,
    page_text,
)
from explorer.text.sanitize import single_line

RULES = ApiRules(seconds=30.0, body_bytes=32_000_000, is_billed=True)
"""The rules for calls, which are billed: the price includes text and highlights of up to 10 results."""
SNIPPET_CHARS = 1_000
PASSAGE_CHARS = {"basic": 1_000, "advanced": 3_000}
REFUSALS: Mapping[int, LiteralString] = {401: "did not accept its key (EXA_API_KEY)"}


class ExaResult(WireModel):
    """A result in Exa's answer."""

    title: str | None = None
    url: str = ""
    publishedDate: str | None = None  # noqa: N815 - the wire's name
    author: str | None = None
    score: float | None = None
    text: str | None = None
    highlights: list[str] | None = None


class ExaAnswer(WireModel):
    """The answer to a search."""

    results: tuple[ExaResult, ...] = ()


class ExaSearch(ApiSearch):
    """Searches with Exa's API."""

    name = "exa"

    def __init__(self, key: str, url: str, *, rules: ApiRules = RULES) -> None:
        super().__init__(ApiClient(url, {"x-api-key": key}, secret=key, rules=rules))

    async def search(self, query: WebQuery) -> WebAnswer:
        """Search; Exa filters sites and days itself.

        Raises:
            SearchFailedError: No answer came.
        """
        try:
            answer = parsed(ExaAnswer, await self._call.post("/search", _payload(query)))
        except CallError as error:
            raise failure(self.name, error, REFUSALS) from error
        return answered(query, self.name, map(_hit, answer.results), dates_by_engine=True)


def _hit(result: ExaResult) -> WebHit:
    text, flags = page_text(result.text)
    # Exa cuts where it is told to, and does not say whether it did.
    is_cut = len(result.text or "") >= PAGE_TEXT_CHARS
    return WebHit(
        title=single_line(result.title or result.url),
        url=result.url,
        snippet="\n".join(result.highlights or []).strip() or text[:SNIPPET_CHARS],
        published=iso_date(result.publishedDate or "", datetime.now(UTC)),
        score=result.score,
        author=single_line(result.author or ""),
        text=text,
        flags=("truncated",) if is_cut else flags,
    )


def _payload(query: WebQuery) -> JsonObject:
    """Return the fields of Exa's request; with wanted sites, unwanted ones below them are removed from the answer."""
    payload: JsonObject = {
        "query": query.words,
        "type": "auto",
        "numResults": query.max_results,
        "includeDomains": list(query.include_domains),
        "excludeDomains": [] if query.include_domains else list(query.exclude_domains),
        "startPublishedDate": f"{query.since}T00:00:00.000Z" if query.since else "",
        "contents": {
            "text": {"maxCharacters": PAGE_TEXT_CHARS},
            "highlights": {"query": query.words, "maxCharacters": PASSAGE_CHARS[query.depth]},
        },
    }
    return {name: value for name, value in payload.items() if value}


class ExaSettings(ExtensionSettings):
    """The address of Exa's search API, and the key for it."""

    url: Annotated[str, address_of("EXPLORER_EXA_URL", "Exa's search API")] = "https://api.exa.ai"
    key: Annotated[SecretStr, key_of("EXA_API_KEY", "Key for Exa's web search")] = SecretStr("")


def _open(settings: ExaSettings, access: SearchAccess) -> WebSearch:
    return ExaSearch(settings.key.get_secret_value(), settings.url, rules=access.rules(RULES))


ENGINE = SearchEngine("exa", ExaSettings, _open, needs="key")
