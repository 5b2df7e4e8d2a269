"""Searches arXiv's papers through its API, which answers with an Atom feed.

Its terms allow one request in three seconds, and one connection at a time:
https://info.arxiv.org/help/api/tou.html, https://info.arxiv.org/help/api/user-manual.html
"""

import re
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING, Annotated

from pydantic import TypeAdapter

from explorer.schema.setting import ExtensionSettings, address_of
from explorer.sources.http.api_client import ApiClient, ApiRules
from explorer.sources.http.wire import moment
from explorer.sources.page import Site, SiteAccess, ThreadReader
from explorer.sources.search.port import WebAnswer, WebHit, WebQuery
from explorer.sources.site_search import SearchableSite
from explorer.text.rendering import own
from explorer.text.sanitize import single_line

if TYPE_CHECKING:
    # Every command reads the sites' settings, and the parser imports much.
    from explorer.documents.parsing.document import FeedEntry
    from explorer.documents.parsing.parser import DocumentParser

RULES = ApiRules(in_flight=1, gap_s=3.0, seconds=30.0)
OWN_LANGUAGE = re.compile(r"\b(?:ti|au|abs|co|jr|cat|rn|all):|\b(?:AND|OR|ANDNOT)\b")
WORDS = re.compile(r'"[^"]+"|[^\s"]+')
VERSION = re.compile(r"v\d+$")
ERRORS = "/api/errors"
"""A part of the id of the entry that an error is."""


class Arxiv(SearchableSite):
    """Searches papers; their pages are read like any others. `parser` parses feeds in a confined process."""

    name = "arxiv"
    finds = "preprints with abstracts (its fields ti:, au:, abs:, cat: with AND and OR)"

    def __init__(self, call: ApiClient, parser: "DocumentParser") -> None:
        super().__init__(call)
        self._parser = parser

    async def _found(self, query: WebQuery) -> WebAnswer:
        from explorer.documents.parsing.document import FeedEntry  # noqa: PLC0415 - as above
        from explorer.documents.parsing.kinds import ENTRIES  # noqa: PLC0415

        parameters = {"search_query": _searched(query), "start": "0", "max_results": str(query.max_results)}
        body = await self._body("/query", parameters)
        listed = await self._parser.parse(ENTRIES, body, content_type="application/atom+xml")
        entries = TypeAdapter(list[FeedEntry]).validate_json(listed.text)
        if entries and ERRORS in entries[0].id:
            raise self.refusal(own("did not accept the query"), single_line(entries[0].content))
        return self.answer(_hit(entry) for entry in entries)


def _hit(entry: "FeedEntry") -> WebHit:
    return WebHit(
        title=single_line(entry.title),
        url=VERSION.sub("", entry.id.replace("http://", "https://", 1)),
        snippet=single_line(f"{entry.author}. {entry.content}"),
        published=moment(entry.time)[:10],
        author=single_line(entry.author),
    )


def _searched(query: WebQuery) -> str:
    """Return the query in arXiv's language: all plain words anywhere, since a day."""
    words = query.words
    if not OWN_LANGUAGE.search(words):
        words = " AND ".join(f"all:{word}" for word in WORDS.findall(words)) or words
    since = query.since.replace("-", "")
    return f"({words}) AND submittedDate:[{since}0000 TO 999912312359]" if since else words


class ArxivSettings(ExtensionSettings):
    """The address of the service."""

    url: Annotated[str, address_of("EXPLORER_ARXIV_URL", "arXiv's API")] = "https://export.arxiv.org/api"


def _connect(settings: ArxivSettings, access: SiteAccess) -> AbstractAsyncContextManager[ThreadReader]:
    return aclosing(Arxiv(ApiClient(settings.url, {}, rules=access.rules(RULES)), access.parser))


SITE = Site("arxiv", ("arxiv.org",), settings=ArxivSettings, connect=_connect, is_on_sample_day=False)
