"""Searches scholarly works through OpenAlex's API, and reads one by its id.

Since 2026-02-13 a search costs $0.001 of a free daily allowance: a few without a key, 1,000 with a free one; reading
one work is free (https://developers.openalex.org/api-reference/authentication).
"""

import re
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, SecretStr

from explorer.schema.setting import ExtensionSettings, address_of, key_of
from explorer.sources.http.api_client import ApiClient, ApiRules
from explorer.sources.http.wire import WireModel, listed
from explorer.sources.page import Site, SiteAccess, ThreadReader, WebPage
from explorer.sources.search.port import WebAnswer, WebHit, WebQuery
from explorer.sources.site_search import SearchableSite
from explorer.text.sanitize import single_line

RULES = ApiRules(in_flight=2, is_billed=True)
FIELDS = (
    "id,doi,display_name,publication_date,type,cited_by_count,authorships,primary_location,open_access,is_retracted,"
    "abstract_inverted_index"
)
WORK = re.compile(r"/(?:works/)?(w\d{1,12})/?", re.IGNORECASE)
SHOWN_AUTHORS = 6
MAX_ABSTRACT_WORDS = 2_000


class _Author(WireModel):
    display_name: str | None = None


class _Authorship(WireModel):
    author: _Author | None = None


class _Venue(WireModel):
    display_name: str | None = None


class _Location(WireModel):
    source: _Venue | None = None


class _Access(WireModel):
    oa_url: str | None = None


class _Work(WireModel):
    id: str
    doi: str | None = None
    display_name: str | None = None
    publication_date: str | None = None
    type: str | None = None
    cited_by_count: int = 0
    authorships: Annotated[tuple[_Authorship, ...], BeforeValidator(listed)] = ()
    primary_location: _Location | None = None
    open_access: _Access | None = None
    is_retracted: bool = False
    abstract_inverted_index: Mapping[str, tuple[int, ...]] | None = None

    @property
    def authors(self) -> str:
        """The first authors."""
        names = [one.author.display_name for one in self.authorships if one.author and one.author.display_name]
        more = " and others" if len(names) > SHOWN_AUTHORS else ""
        return single_line(", ".join(names[:SHOWN_AUTHORS]) + more)

    @property
    def facts(self) -> str:
        """What is known of the work, on one line."""
        venue = self.primary_location and self.primary_location.source and self.primary_location.source.display_name
        free = self.open_access and self.open_access.oa_url
        parts = [
            "RETRACTED" if self.is_retracted else "",
            self.authors,
            venue or "",
            self.type or "",
            f"cited by {self.cited_by_count}",
            f"free text: {free}" if free else "no free text",
        ]
        return single_line("; ".join(part for part in parts if part))

    @property
    def abstract(self) -> str:
        """The abstract, which comes as the places of each of its words."""
        places = [(place, word) for word, listed in (self.abstract_inverted_index or {}).items() for place in listed]
        return " ".join(word for _, word in sorted(places)[:MAX_ABSTRACT_WORDS])

    @property
    def text(self) -> str:
        """Facts and abstract."""
        return "\n\n".join(part for part in (self.facts, self.abstract) if part)


class _Answer(WireModel):
    results: tuple[_Work, ...] = ()


class OpenAlex(SearchableSite):
    """Searches works; a work of its own address is read through the API, because its pages are made by scripts."""

    name = "openalex"
    finds = "scholarly works of all fields, with abstract, citations and free text"
    remedy = "set OPENALEX_API_KEY: a free key allows 1,000 searches a day"

    def __init__(self, call: ApiClient, key: str = "") -> None:
        super().__init__(call)
        self._key = key

    async def _found(self, query: WebQuery) -> WebAnswer:
        parameters = {
            "search": query.words,
            "per_page": str(query.max_results),
            "select": FIELDS,
            "filter": f"from_publication_date:{query.since}" if query.since else "",
            "api_key": self._key,
        }
        answer = await self._asked(_Answer, "/works", parameters)
        return self.answer(map(_hit, answer.results))

    async def _item(self, url: str) -> WebPage | None:
        found = WORK.fullmatch(urlsplit(url).path)
        if not found:
            return None
        work = await self._asked(_Work, f"/works/{found[1].upper()}", {"select": FIELDS, "api_key": self._key})
        return WebPage(
            url=url,
            title=single_line(work.display_name or "(no title)"),
            text=work.text,
            via=self.name,
            author=work.authors,
            published=work.publication_date or "",
        )


def _hit(work: _Work) -> WebHit:
    return WebHit(
        title=single_line(work.display_name or "(no title)"),
        url=work.doi or work.id,
        snippet=work.text,
        published=work.publication_date or "",
        author=work.authors,
    )


class OpenAlexSettings(ExtensionSettings):
    """The address of the service, and the key for it."""

    url: Annotated[str, address_of("EXPLORER_OPENALEX_URL", "OpenAlex's API")] = "https://api.openalex.org"
    key: Annotated[
        SecretStr, key_of("OPENALEX_API_KEY", "Key for OpenAlex; free, for 1,000 searches a day instead of a few")
    ] = SecretStr("")


def _connect(settings: OpenAlexSettings, access: SiteAccess) -> AbstractAsyncContextManager[ThreadReader]:
    key = settings.key.get_secret_value()
    return aclosing(OpenAlex(ApiClient(settings.url, {}, rules=access.rules(RULES), secret=key), key))


SITE = Site("openalex", ("openalex.org",), settings=OpenAlexSettings, connect=_connect, is_on_sample_day=False)
