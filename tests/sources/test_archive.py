"""Archived copies of pages that are gone: found, dated, stated, and not asked for where they must not be."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from explorer.documents.parsing.parser import TrustingParser
from explorer.network.guard import Guard
from explorer.reports.render import reference
from explorer.schema.errors import NoSuchThingError, ToolError
from explorer.schema.events import Source
from explorer.sources.http.fetch import Web
from explorer.sources.pages import PageReader, WebArchive
from explorer.tools.web import ReadWebpageTool
from sources.loopback import Answer, Handler, Ledger, as_json, open_web, serving
from tool_call import call_tool

GONE = "https://news.example/old/story"
STAMP = "20130919044612"
TEXT = b"<html><title>Old story</title><body><p>The ferry sank in the harbour on Tuesday.</p></body></html>"
FOUND = {"url": GONE, "archived_snapshots": {"closest": {"available": True, "timestamp": STAMP, "status": "200"}}}


def archive(answer: object) -> Callable[[httpx2.Request], httpx2.Response]:
    """The web: a page that is gone, and the Internet Archive with its API and its copies."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        url = str(request.url)
        if request.url.host == "archive.org" and request.url.path == "/wayback/available":
            assert parse_qs(urlsplit(url).query) == {"url": [GONE]}
            return httpx2.Response(200, json=answer)
        if url == f"https://web.archive.org/web/{STAMP}id_/{GONE}":
            return httpx2.Response(200, content=TEXT, headers={"content-type": "text/html"})
        return httpx2.Response(404, content=b"gone")

    return respond


def reader(respond: Callable[[httpx2.Request], httpx2.Response]) -> PageReader:
    """Reads pages of that web."""
    web = Web(Guard(), transport=httpx2.MockTransport(respond))
    return PageReader(web, TrustingParser(), archive=WebArchive(web))


@pytest.mark.slow
async def test_the_copy_of_a_page_that_is_gone_is_dated_and_stated() -> None:
    """The model reads that it is a copy, and of which day; the source and the report's reference have the day."""
    ledger = Ledger()
    found = await call_tool(ReadWebpageTool(reader(archive(FOUND))), ledger.context, url=GONE)
    assert "The page is gone (status 404). This is its archived copy of 2013-09-19: say so." in found.content
    assert "The ferry sank" in found.content
    assert f"url: https://web.archive.org/web/{STAMP}/{GONE}" in ledger.text("S1")
    source = Source(
        id="S1", url=f"https://web.archive.org/web/{STAMP}/{GONE}", title="Old story", kind="page", via="archive",
        retrieved=datetime(2026, 8, 10, tzinfo=UTC), sha256="0" * 64, chars=9, flags=("archived_2013-09-19",),
    )  # fmt: skip
    assert "(archived 2013-09-19)" in reference(source)
    assert "archived_2013-09-19" in ledger.text("S1")


@pytest.mark.parametrize(
    "answer",
    [
        {"archived_snapshots": {}},
        {"archived_snapshots": []},
        {"archived_snapshots": {"closest": {"available": True, "timestamp": STAMP, "status": "404"}}},
        {"archived_snapshots": {"closest": {"available": True, "timestamp": "../../etc", "status": "200"}}},
        "no object",
    ],
)
async def test_without_a_copy_the_error_stays(answer: object) -> None:
    """No copy, a copy of an error, and an answer that is none leave the page's own error."""
    with pytest.raises(NoSuchThingError, match="404"):
        await reader(archive(answer)).read(GONE)


@pytest.mark.slow
async def test_a_host_that_is_gone_has_copies_too() -> None:
    """A name that nobody has any more is looked up in the archive; the hosts of the user never are."""
    url = "http://gone.invalid/x"

    def page(asked: Handler) -> Answer:
        assert asked.path.endswith(url)
        return Answer(TEXT)

    routes = {"/wayback/available": as_json(FOUND), f"/web/{STAMP}id_/{url}": page}
    with serving(routes) as site:
        async with open_web() as web:
            pages = PageReader(web, TrustingParser(), archive=WebArchive(web, site.url))
            found = await pages.read(url)
            with pytest.raises(ToolError, match="404"):
                await pages.read(f"{site.url}/missing")
    assert found.notes[0].startswith("The page is gone (its host is gone).")
    assert json.dumps([path for path in site.paths() if "available" in path]).count("available") == 1
