"""Searches with the user's own SearXNG: no key, many engines at once."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, LiteralString

from pydantic import JsonValue

from explorer.schema.setting import URL, ExtensionSettings, Group, Setting
from explorer.sources.http.api_client import ApiClient, ApiRules, CallError, parsed
from explorer.sources.http.wire import WireModel
from explorer.sources.search.port import (
    ApiSearch,
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
    window,
    with_sites,
)
from explorer.text.rendering import own
from explorer.text.sanitize import single_line

REFUSALS: Mapping[int, LiteralString] = {
    403: "has its JSON format switched off: list json under search.formats in its settings.yml",
    404: "is not found at its address: check EXPLORER_SEARXNG_URL",
    429: "refuses by its limiter: allow this machine in its limiter.toml, or set server.limiter to false",
}
RULES = ApiRules()
MAX_ENGINES_NAMED = 6
NOT_A_NAME = re.compile(r"[^\w .:/-]")


class SearxngResult(WireModel):
    """A result in SearXNG's answer."""

    title: str | None = None
    url: str | None = None
    content: str | None = None
    score: float | None = None
    publishedDate: str | None = None  # noqa: N815 - the wire's name


class SearxngAnswer(WireModel):
    """The answer to a search."""

    results: tuple[SearxngResult, ...] = ()
    unresponsive_engines: tuple[list[JsonValue], ...] = ()
    """Pairs of an engine's name and the reason why it did not answer."""


class SearxngSearch(ApiSearch):
    """Searches with SearXNG's JSON interface."""

    name = "searxng"

    def __init__(
        self, url: str, *, rules: ApiRules = RULES, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        super().__init__(ApiClient(url.rstrip("/").removesuffix("/search"), {}, rules=rules))
        self._now = now

    async def search(self, query: WebQuery) -> WebAnswer:
        """Search; the query contains the sites, and SearXNG's coarse windows replace dates.

        Raises:
            SearchFailedError: No answer came, or none of its engines gave one.
        """
        parameters = {"q": with_sites(query), "format": "json", "pageno": "1"}
        if reach := window(query.since, self._now()):
            parameters["time_range"] = reach
        try:
            answer = parsed(SearxngAnswer, await self._call.get("/search", parameters))
        except CallError as error:
            raise failure(self.name, error, REFUSALS) from error
        silent = _named(answer.unresponsive_engines)
        if silent and not answer.results:
            raise SearchFailedError(self.name, own("got nothing from its engines: {names}", names=silent))
        found = answered(query, self.name, map(self._hit, answer.results))
        return (
            replace(found, notes=(*found.notes, own("Engines that did not answer: {names}.", names=silent)))
            if silent
            else found
        )

    def _hit(self, result: SearxngResult) -> WebHit:
        url = result.url or ""
        return WebHit(
            title=single_line(result.title or url),
            url=url,
            snippet=(result.content or "").strip(),
            published=iso_date(result.publishedDate or "", self._now()),
            score=result.score,
        )


def _named(pairs: Sequence[Sequence[JsonValue]]) -> str:
    """Return the engines with their reasons, as names without other text."""
    words = [[NOT_A_NAME.sub("", str(part))[:40].strip() for part in pair[:2]] for pair in pairs if pair]
    named = [f"{name} ({why[0]})" if why and why[0] else name for name, *why in words[:MAX_ENGINES_NAMED]]
    return ", ".join(named) + (" and others" if len(words) > MAX_ENGINES_NAMED else "")


class SearxngSettings(ExtensionSettings):
    """The address of the user's SearXNG."""

    url: Annotated[
        str, Setting("EXPLORER_SEARXNG_URL", URL, "Your own SearXNG, with JSON among its formats", Group.SOURCES)
    ] = ""


def _open(settings: SearxngSettings, access: SearchAccess) -> WebSearch:
    return SearxngSearch(settings.url, rules=access.rules(RULES))


ENGINE = SearchEngine("searxng", SearxngSettings, _open, needs="url")
