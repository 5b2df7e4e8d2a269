"""`search_site` against services on loopback that enforce their own rules, and the pages that are read through them."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explorer.documents.parsing.parser import TrustingParser
from explorer.run.connectors import Connectors
from explorer.run.extensions import BUILT_IN, Point
from explorer.schema.errors import ToolError
from explorer.schema.settings import Secrets, Settings
from explorer.schema.settings import Services as Addresses
from explorer.schema.tool import Tool, ToolResult
from explorer.sources.arxiv import RULES, Arxiv
from explorer.sources.http.api_client import ApiClient
from explorer.sources.search.port import WebQuery
from sources.loopback import Ledger, Site, serving, unfenced
from sources.site_services import KEY, Services
from tool_call import call_tool


@pytest.fixture
def services() -> Services:
    """What the services remember."""
    return Services()


@pytest.fixture
def server(services: Services) -> Generator[Site]:
    """All of them at one address."""
    with serving(services.routes) as site:
        yield site


@asynccontextmanager
async def connected(server: Site, folder: Path, contact: str = "a@b.eu", **keys: str) -> AsyncGenerator[Connectors]:
    """A run's sources, with the services at their stand-ins."""
    addresses = {
        "arxiv_url": f"{server.url}/api",
        "wikipedia_url": f"{server.url}/w",
        "openalex_url": server.url,
        "github_url": server.url,
        "stackexchange_url": f"{server.url}/2.3",
    }
    settings = Settings(
        workspace=folder,
        contact=contact,
        services=Addresses.model_validate(addresses),
        secrets=Secrets.model_validate(keys),
    )
    async with Connectors.open(settings) as opened:
        yield opened


def tool(sources: Connectors) -> Tool:
    """The tool of a run."""
    return next(one for one in sources.tools() if one.name == "search_site")


async def search(sources: Connectors, site: str, query: str = "glue", **more: Any) -> ToolResult:
    """One call of it."""
    return await call_tool(tool(sources), Ledger().context, site=site, query=query, **more)


@pytest.mark.parametrize(
    ("site", "lines"),
    [
        (
            "arxiv",
            [
                "1. [S1] Glue of the stars (2024-01-02)",
                "   https://arxiv.org/abs/2401.01234",
                "   Ada Stone, Bo Reed. We glue.",
            ],
        ),
        ("wikipedia", ["1. [S1] Glue", "   https://en.wikipedia.org/wiki/Glue", "   Sticky."]),
        (
            "openalex",
            [
                "1. [S1] On glue (2023-05-01)",
                "   https://doi.org/10.1/glue",
                "   Ada Stone; Glue Letters; article; cited by 7; no free text Glue sticks and sticks",
            ],
        ),
        (
            "github",
            [
                "1. [S1] ada/glue (2026-08-01)",
                "   https://github.com/ada/glue",
                "   Glues things; 42 stars, 0 forks, 0 open issues; last push 2026-08-01, since 2020-01-01",
            ],
        ),
        (
            "stackexchange",
            [
                '1. [S1] Why is glue "wet"? (2023-12-31)',
                "   https://stackoverflow.com/questions/11/why",
                "   score 5, 1 answers, one accepted; tags: glue. It drips.",
            ],
        ),
    ],
)
async def test_each_site_is_searched_by_its_own_rules(
    server: Site, tmp_path: Path, site: str, lines: list[str]
) -> None:
    """A hit has a title, a date, an address that can be read, and what the service says of it; it is a source."""
    async with connected(server, tmp_path) as sources:
        found = await search(sources, site, since="2020-01-01")
        assert unfenced(found.content).split("\n")[:3] == lines
        assert f"through {site}" in found.content
        await search(sources, site, since="2020-01-01")
    assert len(server.asked) == 1
    assert "a@b.eu" in server.asked[0].headers["user-agent"]


async def test_the_model_is_offered_the_sites_that_there_are(server: Site, tmp_path: Path) -> None:
    """The names are the registered ones; the sample day, which has no network, has no such tool."""
    async with connected(server, tmp_path) as sources:
        names = {"arxiv", "github", "openalex", "stackexchange", "wikipedia"}
        assert set(tool(sources).parameters["properties"]["site"]["enum"]) == names  # type: ignore[index, call-overload] - JSON
        assert names < {entry.name for entry in BUILT_IN if entry.group == Point.SOURCES}
        with pytest.raises(ToolError, match="site"):
            await search(sources, "google")
    async with Connectors.open(Settings(is_sample=True, workspace=tmp_path)) as sources:
        assert "search_site" in sources.absent
        assert server.asked == []


async def test_issues_are_searched_where_the_query_names_them(server: Site, tmp_path: Path) -> None:
    """GitHub refuses a search of issues without their kind: it is added."""
    async with connected(server, tmp_path) as sources:
        found = await search(sources, "github", "repo:ada/glue stick")
        assert "It does not stick" in found.content
        assert "closed on 2026-02-02, 1 comments, by bo. On glass." in found.content
    assert "is%3Aissue" in server.paths()[0]


async def test_pages_of_the_sites_are_read_through_the_services(server: Site, tmp_path: Path) -> None:
    """A repository, an issue, a question and a work arrive as text, with what was said below."""
    async with connected(server, tmp_path) as sources:
        pages = {
            "https://github.com/ada/glue": "# Glue\n\nIt sticks.",
            "https://github.com/ada/glue/issues/7": "ada, 2026-02-02:\nClean it first.",
            "https://stackoverflow.com/questions/11/why": "score 9, accepted)\n\nBecause.",
            "https://openalex.org/W123": "Glue sticks and sticks",
        }
        for url, text in pages.items():
            page = await sources.pages.read(url)
            assert text in page.text
            assert page.via in {"github", "stackexchange", "openalex"}


async def test_limits_are_named_with_what_raises_them(server: Site, services: Services, tmp_path: Path) -> None:
    """The eleventh search without a key is refused in the service's words; with a key it is not, and no text has it."""
    async with connected(server, tmp_path) as sources:
        for site, words, variable in (
            ("openalex", "asks to send fewer requests (status 429). It says: Insufficient budget", "OPENALEX_API_KEY"),
            ("github", "limit for callers without a key is used up (status 403)", "EXPLORER_GITHUB_TOKEN"),
        ):
            services.searches[site] = 10
            with pytest.raises(ToolError) as caught:
                await search(sources, site)
            assert words in caught.value.message
            assert variable in caught.value.hint
    async with connected(server, tmp_path, openalex_key=KEY, github_token=KEY) as sources:
        for site in ("openalex", "github"):
            assert KEY not in (await search(sources, site)).content


async def test_a_pause_that_is_asked_for_is_kept(server: Site, services: Services, tmp_path: Path) -> None:
    """After `backoff` Stack Exchange is not asked again, and the text says how long."""
    services.backoff = 30
    async with connected(server, tmp_path) as sources:
        await search(sources, "stackexchange")
        with pytest.raises(ToolError, match=r"asks to wait (29|30) s more"):
            await search(sources, "stackexchange", "paste")
    assert len(server.asked) == 1


async def test_arxiv_is_asked_once_in_three_seconds(server: Site) -> None:
    """The second request waits, and an error that comes as an entry is an error."""
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    site = Arxiv(ApiClient(f"{server.url}/api", {}, rules=replace(RULES, pause=pause)), TrustingParser())
    await site.search(WebQuery("glue"))
    with pytest.raises(ToolError, match=r"did not accept the query.*It says: incorrect query"):
        await site.search(WebQuery("all:)"))
    await site.aclose()
    assert len(waits) == 1
    assert 0 < waits[0] <= 3.0


async def test_wikipedia_wants_a_contact(server: Site, tmp_path: Path) -> None:
    """Without one it refuses, and the user reads what to set."""
    async with connected(server, tmp_path, contact="") as sources:
        with pytest.raises(ToolError) as caught:
            await search(sources, "wikipedia")
    assert "refused access" in caught.value.message
    assert "EXPLORER_CONTACT" in caught.value.hint
