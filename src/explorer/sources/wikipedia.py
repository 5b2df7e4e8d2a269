"""Searches Wikipedia through MediaWiki's API, in the language whose script the query has.

Wikimedia asks for a User-Agent with a contact, three requests at a time at most, and respects Retry-After:
https://www.mediawiki.org/wiki/Wikimedia_APIs/Rate_limits, https://www.mediawiki.org/wiki/API:Etiquette
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Annotated

from explorer.schema.setting import ExtensionSettings, address_of
from explorer.sources.http.api_client import ApiClient, ApiRules
from explorer.sources.http.wire import WireModel
from explorer.sources.page import Site, SiteAccess, ThreadReader
from explorer.sources.search.port import WebAnswer, WebHit, WebQuery
from explorer.sources.site_search import SearchableSite
from explorer.text.rendering import own
from explorer.text.sanitize import single_line

PUBLIC = "https://{language}.wikipedia.org/w"
DEFAULT_LANGUAGE = "en"
EXTRACT_CHARS = "600"
MOST = 20
"""The largest number of beginnings of articles in one answer (`exlimit`)."""
RULES = ApiRules(in_flight=2)


class _Article(WireModel):
    title: str
    fullurl: str = ""
    extract: str = ""
    index: int = 0


class _Found(WireModel):
    pages: tuple[_Article, ...] = ()


class _Error(WireModel):
    info: str = ""


class _Answer(WireModel):
    query: _Found = _Found()
    error: _Error | None = None


class Wikipedia(SearchableSite):
    """Searches articles; they are read like any other pages. `call` opens the Wikipedia of a language."""

    name = "wikipedia"
    remedy = "set EXPLORER_CONTACT: Wikimedia asks how to reach who asks"
    finds = "encyclopedia articles, in the language whose script the query has"

    def __init__(self, call: Callable[[str], ApiClient]) -> None:
        super().__init__(call(DEFAULT_LANGUAGE))
        self._open = call
        self._by_language = {DEFAULT_LANGUAGE: self._call}

    async def _found(self, query: WebQuery) -> WebAnswer:
        # Every command reads the sites' settings, and the parser imports much.
        from explorer.documents.parsing.judgement import language_of  # noqa: PLC0415

        language = language_of("", query.words) or DEFAULT_LANGUAGE
        if language not in self._by_language:
            self._by_language[language] = self._open(language)
        parameters = {
            "action": "query",
            "format": "json",
            "formatversion": "2",
            "generator": "search",
            "gsrsearch": query.words,
            "gsrlimit": str(min(query.max_results, MOST)),
            "prop": "extracts|info",
            "exintro": "1",
            "explaintext": "1",
            "exchars": EXTRACT_CHARS,
            "exlimit": "max",
            "inprop": "url",
        }
        answer = await self._asked(_Answer, "/api.php", parameters, self._by_language[language])
        if answer.error:
            raise self.refusal(own("did not accept the query"), single_line(answer.error.info))
        ordered = sorted(answer.query.pages, key=lambda article: article.index)
        hits = [WebHit(single_line(one.title), one.fullurl, one.extract.strip()) for one in ordered if one.fullurl]
        notes = [own("Articles have no date of publication; since was not applied.")] if query.since else []
        return self.answer(hits, notes)

    async def aclose(self) -> None:
        """Close the connections to all languages."""
        async with AsyncExitStack() as stack:
            for call in self._by_language.values():
                stack.push_async_callback(call.aclose)


class WikipediaSettings(ExtensionSettings):
    """The address of the service."""

    url: Annotated[
        str,
        address_of(
            "EXPLORER_WIKIPEDIA_URL",
            "MediaWiki's API (the folder of `api.php`), for all languages",
            default="Wikipedia's",
        ),
    ] = ""


def _connect(settings: WikipediaSettings, access: SiteAccess) -> AbstractAsyncContextManager[ThreadReader]:
    def call(language: str) -> ApiClient:
        return ApiClient(settings.url or PUBLIC.format(language=language), {}, rules=access.rules(RULES))

    return aclosing(Wikipedia(call))


SITE = Site("wikipedia", ("wikipedia.org",), settings=WikipediaSettings, connect=_connect, is_on_sample_day=False)
