"""Hacker News, through its two public APIs: its settings, and how its services are opened."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

from explorer.schema.setting import ExtensionSettings, address_of
from explorer.sources.page import Site, SiteAccess, SiteProbe, ThreadReader

HOST = "news.ycombinator.com"


class HnSettings(ExtensionSettings):
    """The addresses of the two services."""

    api_url: Annotated[str, address_of("EXPLORER_HN_API_URL", "Hacker News API")] = (
        "https://hacker-news.firebaseio.com/v0"
    )
    search_url: Annotated[str, address_of("EXPLORER_HN_SEARCH_URL", "Hacker News search API")] = (
        "https://hn.algolia.com/api/v1"
    )


@asynccontextmanager
async def _connect(settings: HnSettings, access: SiteAccess) -> AsyncGenerator[ThreadReader]:
    from explorer.sources.hackernews.hackernews import HackerNews  # noqa: PLC0415 - every command reads the settings

    yield HackerNews(access.web, access.parser, settings.api_url, settings.search_url)


def _probes(settings: HnSettings) -> Sequence[SiteProbe]:
    return (
        SiteProbe("hacker news", f"{settings.api_url}/maxitem.json", "api_url"),
        SiteProbe("hn search", f"{settings.search_url}/search?query=a&hitsPerPage=1", "search_url"),
    )


SITE = Site("hn", (HOST,), settings=HnSettings, connect=_connect, probes=_probes)
