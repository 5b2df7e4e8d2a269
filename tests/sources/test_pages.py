"""Reading pages: what is text, what is missing, and what the page says of itself."""

import asyncio
from collections.abc import Mapping

import httpx2
import pytest

from documents.parsing.documents import pdf_of
from explorer.documents.parsing.parser import Parser, TrustingParser
from explorer.network.guard import Guard
from explorer.schema.errors import ToolError
from explorer.sources.http.fetch import Web
from explorer.sources.page import WebPage, is_stale
from explorer.sources.pages import PageReader, ReaderService
from sources.loopback import NOW, Answer, Route, as_json, no_pause, open_web, serving

SENTENCE = "The paper lighthouse on the northern pier was folded by hand from a single sheet of blue card. "

ARTICLE = f"""<!doctype html><html lang="en"><head>
<title>The paper lighthouse | Harbour News</title>
<meta name="author" content="Ada Example">
<meta property="article:published_time" content="2026-08-09T08:00:00Z">
</head><body>
<nav><a href="/">Home</a><a href="/news">News</a></nav>
<article><h1>The paper lighthouse</h1>
<p>{SENTENCE * 3}</p>
<h2>How it was folded</h2>
<p>{SENTENCE * 3} Read <a href="/glue">about the glue</a> too.</p>
<ul><li>one sheet</li><li>two folds</li></ul>
<table><tr><th>Day</th><th>Visitors</th></tr><tr><td>Monday</td><td>120</td></tr></table>
<p>{SENTENCE * 3}</p>
</article>
<footer>All rights reserved, buy our mugs</footer>
</body></html>"""

SHELL = (
    "<html><head><title>Board</title></head><body><div id='root'></div><noscript>You need to enable JavaScript."
    "</noscript><script>" + "var state = 1;" * 500 + "</script></body></html>"
)
CHALLENGE = (
    "<html><head><title>Just a moment...</title></head><body><h1>shop.example</h1>"
    "<p>Verifying you are human. This may take a few seconds.</p></body></html>"
)
PAYWALL = (
    "<html><head><title>Folded</title><script type='application/ld+json'>"
    '{"@type":"NewsArticle","isAccessibleForFree": false}</script></head><body><article><h1>Folded</h1>'
    f"<p>{SENTENCE * 4}</p><p>Subscribe to continue reading.</p></article></body></html>"
)


def html(text: str, charset: str = "; charset=utf-8", encoding: str = "utf-8") -> Answer:
    """A page."""
    return Answer(text.encode(encoding), content_type=f"text/html{charset}")


async def read(routes: Mapping[str, Route], path: str = "/page") -> WebPage:
    """Read one page of a site, directly."""
    with serving(routes) as site:
        async with open_web() as web:
            return await PageReader(web, TrustingParser()).read(site.url + path)


async def test_an_article() -> None:
    """Headings, lists, tables and links are kept as markdown; navigation and footer are not."""
    page = await read({"/page": html(ARTICLE)})
    assert page.title.startswith("The paper lighthouse")
    assert (page.author, page.published, page.via, page.flags) == ("Ada Example", "2026-08-09", "direct", ())
    assert "## How it was folded" in page.text
    assert "- one sheet" in page.text
    assert "| Monday | 120 |" in page.text
    assert "/glue)" in page.text
    assert "buy our mugs" not in page.text
    assert not page.text.startswith("---")


async def test_the_address_after_redirects() -> None:
    """A page is known by where it was found in the end."""
    page = await read({"/page": Answer(status=301, headers={"Location": "/moved"}), "/moved": html(ARTICLE)})
    assert page.url.endswith("/moved")


@pytest.mark.parametrize(
    ("encoding", "content_type"),
    [
        ("utf-8", "text/html; charset=utf-8"),
        ("utf-8", "text/html; charset=iso-8859-1"),
        ("latin-1", "text/html; charset=ISO-8859-1"),
        ("latin-1", "text/html"),
        ("latin-1", "text/html; charset=no-such-charset"),
        ("latin-1", "text/html; charset=base64"),
        ("latin-1", "text/html; charset=idna"),
        ("utf-8-sig", "text/html"),
        ("utf-16", "text/html"),
        ("utf-16-le", "text/html; charset=utf-16-le"),
    ],
)
async def test_characters(encoding: str, content_type: str) -> None:
    """Valid UTF-8 is read as such, else the label counts, else the web's old default."""
    text = "Gr\u00fc\u00dfe aus K\u00f6ln"
    body = f"<html><body><p>{text}</p></body></html>".encode(encoding)
    assert text in (await read({"/page": Answer(body, content_type=content_type)})).text


async def test_a_charset_in_the_page() -> None:
    """A page that names its charset itself is read by it, and scripts of the world come through."""
    russian = "\u043c\u0430\u044f\u043a \u0438\u0437 \u0431\u0443\u043c\u0430\u0433\u0438 "
    head = '<meta charset="windows-1251"><title>x</title>'
    body = f"<html><head>{head}</head><body><p>{russian * 60}</p></body></html>"
    assert russian.strip() in (await read({"/page": html(body, "", "cp1251")})).text
    japanese = "\u65e5\u672c\u8a9e\u306e\u7d19\u3002"
    assert japanese in (await read({"/page": html(f"<html><body><p>{japanese * 100}</p></body></html>")})).text


@pytest.mark.parametrize(
    ("body", "flag"),
    [(SHELL, "script_shell"), (CHALLENGE, "challenge"), (PAYWALL, "paywall")],
    ids=["shell", "check", "pay"],
)
async def test_flags(body: str, flag: str) -> None:
    """A page tells what is wrong with it."""
    assert flag in (await read({"/page": html(body)})).flags


async def test_no_false_flags() -> None:
    """An article about paywalls and robots is no paywall and no check."""
    body = ARTICLE.replace("one sheet", "Subscribe to continue reading, and are you a robot?" + SENTENCE * 20)
    assert (await read({"/page": html(body)})).flags == ()


async def test_a_long_page_is_truncated() -> None:
    """What lies beyond the byte limit is missing, and the flag says so."""
    body = "<html><body><article>" + f"<p>{SENTENCE}</p>" * 60_000 + "</article></body></html>"
    with serving({"/page": Answer(("word " * 1_200_000).encode(), content_type="text/plain")}) as site:
        async with open_web() as web:
            page = await PageReader(web, TrustingParser()).read(f"{site.url}/page")
    assert page.flags == ("truncated",)
    assert len(page.text) == 5_000_000 - 1
    assert len(body) > 5_000_000


async def test_short_pages_keep_their_words() -> None:
    """Where extraction finds nothing, all words of the page are given."""
    body = "<html><title>Note</title><body><div><span>Only six words are here.</span></div></body></html>"
    page = await read({"/page": html(body)})
    assert page.text == "Only six words are here."
    assert page.title == "Note"
    assert page.flags == ()


@pytest.mark.parametrize(
    ("content_type", "body", "title"),
    [
        ("text/plain", "just text", "notes.txt"),
        ("text/markdown; charset=utf-8", "# Heading\n\ntext", "Heading"),
        ("application/json", '["a"', "notes.txt"),
        ("application/xml", "<root><a/></root>", "notes.txt"),
        ("text/csv", "a,b\n1,2", "notes.txt"),
        ("", "no type at all", "notes.txt"),
        ("application/octet-stream", "a text in disguise", "notes.txt"),
    ],
)
async def test_texts_as_they_are(content_type: str, body: str, title: str) -> None:
    """What is text already is not touched."""
    page = await read({"/a/notes.txt": Answer(body.encode(), content_type=content_type)}, "/a/notes.txt")
    assert (page.text, page.title) == (body, title)


@pytest.mark.parametrize(
    ("content_type", "body", "words"),
    [
        ("application/pdf", b"%PDF-1.7 ...", "the PDF is damaged"),
        ("text/html", pdf_of(["", ""]), "2 pages are pictures without a text layer"),
        ("image/png", b"\x89PNG\r\n\x1a\n\x00\x00", "image/png"),
        ("application/zip", b"PK\x03\x04\x00\x00", "application/zip"),
        ("text/html", b"\x00\x01\x02binary", "text/html, not text"),
        ("application/octet-stream", b"\x7fELF\x00\x00", "application/octet-stream"),
        ("", b"\xfd\xff\x00", "not text"),
        ("text/html", b"", "no readable text"),
        ("text/html", b"<html><body><script>go()</script></body></html>", "no readable text .script_shell"),
    ],
)
async def test_what_is_not_read(content_type: str, body: bytes, words: str) -> None:
    """Anything that is not text is named, whatever it calls itself."""
    with pytest.raises(ToolError, match=words):
        await read({"/page": Answer(body, content_type=content_type)})


@pytest.mark.parametrize(
    ("status", "words"), [(404, "no such page"), (401, "login"), (410, "gone"), (500, "server failed")]
)
async def test_error_pages(status: int, words: str) -> None:
    """An error page is an error, however long its text."""
    with pytest.raises(ToolError, match=words):
        await read({"/page": Answer(ARTICLE.encode(), status)})


async def test_a_check_for_robots() -> None:
    """A refused page that asks for proof is told as that."""
    with pytest.raises(ToolError, match=r"check for robots \(status 403\)"):
        await read({"/page": Answer(CHALLENGE.encode(), 403)})


async def test_a_page_is_read_once() -> None:
    """A second reading, for the next stretch of it, asks nobody."""
    with serving({"/page": html(ARTICLE)}) as site:
        async with open_web() as web:
            reader = PageReader(web, TrustingParser())
            assert await reader.read(f"{site.url}/page") == await reader.read(f" {site.url}/page\n")
    assert site.paths() == ["/page"]


async def test_readers_share_a_reading() -> None:
    """Who asks for a page that is being read waits for it."""
    with serving({"/page": html(ARTICLE)}) as site:
        async with open_web() as web, asyncio.TaskGroup() as group:
            reader = PageReader(web, TrustingParser())
            tasks = [group.create_task(reader.read(f"{site.url}/page")) for _ in range(5)]
    assert len({id(task.result()) for task in tasks}) == 1


@pytest.mark.slow
async def test_in_a_process_of_its_own() -> None:
    """The real parser reads what the network brings: a page, a PDF, a feed, an API's answer."""
    rss = b"<rss version='2.0'><channel><title>News</title><item><title>One</title></item></channel></rss>"
    routes = {
        "/page": html(ARTICLE),
        "/file": Answer(pdf_of(["First", "Second"]), content_type="application/octet-stream"),
        "/feed": Answer(rss, content_type="text/xml"),
        "/api": as_json({"name": "lamp", "price": 4}),
    }
    with serving(routes) as site:
        async with open_web() as web, Parser() as parser:
            reader = PageReader(web, parser)
            page, file, feed, api = [await reader.read(site.url + path) for path in routes]
    assert (page.language, page.published) == ("en", "2026-08-09")
    assert (file.title, file.pages, file.text) == ("First", 2, "[page 1]\nFirst\n\n[page 2]\nSecond")
    assert (feed.title, feed.text) == ("News", "# News\n\n1. One")
    assert (api.title, api.text) == ("lamp", '{\n "name": "lamp",\n "price": 4\n}')


async def test_a_large_pdf_is_fetched_whole() -> None:
    """A PDF beyond the limit for pages is fetched anew: its end matters."""
    large = pdf_of(["First"]).replace(b"%PDF-1.7\n", b"%PDF-1.7\n%" + b"x" * 5_500_000 + b"\n")
    page = await read({"/page": Answer(large, content_type="application/pdf")})
    assert (page.text, page.flags) == ("[page 1]\nFirst", ())


class Threads:
    """A service that knows the threads of a site."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def read(self, url: str) -> WebPage | None:
        """The thread, at addresses that have one."""
        self.asked.append(url)
        return WebPage(url, "Thread", "- ada: words", "forum", kind="comments") if "/t/" in url else None


async def test_threads_come_from_their_service() -> None:
    """A service is asked for its host and the hosts below it, and what is no thread is read as a page."""
    forum = Threads()

    def network(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, html=ARTICLE)

    async with Web(Guard(), transport=httpx2.MockTransport(network)) as web:
        reader = PageReader(web, TrustingParser(), threads={"forum.example": forum})
        assert (await reader.read("https://forum.example/t/1")).via == "forum"
        assert (await reader.read("https://old.forum.example/t/2")).kind == "comments"
        assert (await reader.read("https://forum.example/about")).via == "direct"
        assert (await reader.read("https://notforum.example/t/3")).via == "direct"
    assert len(forum.asked) == 3


@pytest.mark.parametrize(
    ("published", "stale"),
    [
        ("2025-02-01", True),
        ("2025-03-01", False),
        ("2025-02-01T10:00:00+02:00", True),
        ("Sat, 01 Feb 2025 10:00:00 GMT", True),
        ("", False),
        ("yesterday", False),
    ],
)
def test_stale_pages(published: str, *, stale: bool) -> None:
    """A page whose own date is over a year and a half past is stale; without a date nobody knows."""
    assert is_stale(WebPage("https://a.example/", "A", "text", "direct", published=published), NOW) is stale


READER = "https://reader.example/r"
TARGET = "https://paper.example/page?x=1"
READER_HEAD = f"Title: The paper lighthouse\n\nURL Source: {TARGET}\n\n"


async def read_through(
    answer: httpx2.Response, direct: httpx2.Response | None = None, key: str = ""
) -> tuple[WebPage, list[httpx2.Request]]:
    """Read a page with a reader service in front; also what was asked."""
    asked: list[httpx2.Request] = []

    def network(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        if request.url.host == "reader.example":
            return answer
        return direct or httpx2.Response(404)

    async with Web(Guard(["nas.lan"]), transport=httpx2.MockTransport(network), pause=no_pause) as web:
        reader = ReaderService(web, f"{READER}/", key)
        return await PageReader(web, TrustingParser(), reader=reader).read(TARGET), asked


async def test_through_a_reader() -> None:
    """The reader's head gives title and date, its body the text; the page itself is not asked."""
    body = f"{READER_HEAD}Published Time: 2026-08-09T08:00:00Z\n\nMarkdown Content:\n# Paper\n\n{SENTENCE * 5}"
    page, asked = await read_through(httpx2.Response(200, text=body))
    assert [str(request.url) for request in asked] == [f"{READER}/{TARGET}"]
    assert (page.title, page.published, page.via) == ("The paper lighthouse", "2026-08-09T08:00:00Z", "reader")
    assert page.text.startswith("# Paper\n\nThe paper lighthouse on")
    assert (page.url, page.flags) == (TARGET, ())


async def test_a_reader_that_speaks_json() -> None:
    """The JSON form is asked for and understood, with the user's key, which goes to the reader alone."""
    found = {"title": "The paper lighthouse", "content": SENTENCE * 5, "publishedTime": "2026-08-09T08:00:00Z"}
    answer = httpx2.Response(200, json={"code": 200, "status": 20000, "data": found})
    page, (request,) = await read_through(answer, key="sesame")
    assert (page.title, page.published, page.text) == (found["title"], found["publishedTime"], (SENTENCE * 5).strip())
    assert (request.headers["authorization"], request.headers["accept"]) == ("Bearer sesame", "application/json")
    little = httpx2.Response(200, json={"code": 200, "data": {"title": "x", "content": "y"}})
    _, requests = await read_through(little, httpx2.Response(200, html=ARTICLE), key="sesame")
    assert "authorization" not in requests[-1].headers


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, {"code": 40104, "readableMessage": "bad"}, r"its key is missing or was refused \(code 40104\)"),
        (402, {"code": 40203, "message": "balance"}, r"its credit is used up \(code 40203\)"),
        (409, {"code": 40904}, r"beyond its budget \(code 40904\)"),
        (451, {"code": 45102}, r"refuses this page \(code 45102\)"),
        (503, {"code": 50301, "message": "Busy\u200b now"}, r'server failed .* \("Busy now"\) \(code 50301\)'),
        (500, None, r"the server failed \(status 500\)\."),
        (200, {"code": 42900, "data": None}, r"send fewer requests \(code 42900\)"),
        (200, {"code": 200, "status": 20000}, r"it gave no text"),
    ],
)
async def test_what_a_reader_refuses(status: int, body: object, words: str) -> None:
    """The reader's own codes are told in words."""
    answer = httpx2.Response(status, json=body) if body else httpx2.Response(status)
    with pytest.raises(ToolError, match=words):
        await read_through(answer)


async def test_a_reader_that_was_refused() -> None:
    """A reader answers 200 although the page refused it: the flag tells."""
    body = f"{READER_HEAD}Warning: Target URL returned error 403: Forbidden\n\nMarkdown Content:\n{SENTENCE * 5}"
    page, _ = await read_through(httpx2.Response(200, text=body))
    assert page.flags == ("http_403",)


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(404, text="nothing kept"),
        httpx2.Response(503),
        httpx2.Response(200, text=f"{READER_HEAD}Markdown Content:\n"),
        httpx2.Response(200, text=f"{READER_HEAD}Markdown Content:\nJust a moment... Verify you are human."),
    ],
    ids=["404", "503", "empty", "check"],
)
async def test_the_page_itself_when_the_reader_fails(answer: httpx2.Response) -> None:
    """Without a usable text from the reader the page is read directly."""
    page, asked = await read_through(answer, httpx2.Response(200, html=ARTICLE))
    assert page.via == "direct"
    assert str(asked[-1].url) == TARGET


async def test_little_is_better_than_nothing() -> None:
    """When the page itself cannot be read, the reader's few words are given."""
    page, _ = await read_through(httpx2.Response(200, text=f"{READER_HEAD}Markdown Content:\nOnly this."))
    assert (page.via, page.text) == ("reader", "Only this.")


async def test_both_ways_fail() -> None:
    """The error tells both reasons."""
    with pytest.raises(ToolError, match=r"no such page \(status 404\).*reader .* did not help: it asks to send fewer"):
        await read_through(httpx2.Response(429, headers={"Retry-After": "60"}))


async def test_private_hosts_stay_from_the_reader() -> None:
    """A host the user opened for this machine is never told to the reader."""
    asked: list[str] = []

    def network(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        return httpx2.Response(200, html=ARTICLE)

    async with Web(Guard(["nas.lan"]), transport=httpx2.MockTransport(network)) as web:
        reader = PageReader(web, TrustingParser(), reader=ReaderService(web, READER))
        await reader.read("http://nas.lan/page")
        with pytest.raises(ToolError, match="Not fetched"):
            await reader.read("http://10.0.0.1/page")
    assert asked == ["nas.lan"]
