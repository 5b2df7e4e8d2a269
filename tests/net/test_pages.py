"""Reading pages: what is text, what is missing, and what the page says of itself."""

import asyncio
from collections.abc import Mapping

import httpx2
import pytest

from explorer.errors import ToolError
from explorer.net.fetch import Web
from explorer.net.guard import Guard
from explorer.net.pages import Page, PageReader
from net.loopback import Answer, Route, no_pause, open_web, serving

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


async def read(routes: Mapping[str, Route], path: str = "/page") -> Page:
    """Read one page of a site, directly."""
    with serving(routes) as site:
        async with open_web() as web:
            return await PageReader(web).read(site.url + path)


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
            page = await PageReader(web).read(f"{site.url}/page")
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
        ("application/json", '{"a": [1, 2]}', "notes.txt"),
        ("application/feed+json", '{"a": 1}', "notes.txt"),
        ("application/rss+xml", "<rss><channel/></rss>", "notes.txt"),
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
        ("application/pdf", b"%PDF-1.7 ...", "PDF is not read yet"),
        ("text/html", b"%PDF-1.7 ...", "PDF is not read yet"),
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


@pytest.mark.parametrize(
    "url",
    [
        "https://news.ycombinator.com/item?id=8863",
        "http://news.ycombinator.com/item?id=8863#8864",
        "https://news.ycombinator.com/item?x=1&id=8863",
    ],
)
async def test_item_pages_have_a_tool(url: str) -> None:
    """A discussion is not read as a page."""
    async with open_web() as web:
        with pytest.raises(ToolError, match="get_hn_comments with story_id=8863"):
            await PageReader(web).read(url)


async def test_a_page_is_read_once() -> None:
    """A second reading, for the next stretch of it, asks nobody."""
    with serving({"/page": html(ARTICLE)}) as site:
        async with open_web() as web:
            reader = PageReader(web)
            assert await reader.read(f"{site.url}/page") == await reader.read(f" {site.url}/page\n")
    assert site.paths() == ["/page"]


async def test_deep_nesting() -> None:
    """A page nested a hundred thousand deep is survived."""
    body = "<html><body>" + "<div>" * 100_000 + "hello " * 100
    with serving({"/page": html(body)}) as site:
        async with open_web() as web, asyncio.timeout(30):
            try:
                page = await PageReader(web).read(f"{site.url}/page")
            except ToolError as error:
                assert "no readable text" in str(error)  # noqa: PT017 - either is honest
            else:
                assert "hello" in page.text


READER = "https://reader.example/r"
TARGET = "https://paper.example/page?x=1"
READER_HEAD = f"Title: The paper lighthouse\n\nURL Source: {TARGET}\n\n"


async def read_through(answer: httpx2.Response, direct: httpx2.Response | None = None) -> tuple[Page, list[str]]:
    """Read a page with a reader service in front; also which addresses were asked."""
    asked: list[str] = []

    def network(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        if request.url.host == "reader.example":
            return answer
        return direct or httpx2.Response(404)

    async with Web(Guard(["nas.lan"]), transport=httpx2.MockTransport(network), pause=no_pause) as web:
        return await PageReader(web, f"{READER}/").read(TARGET), asked


async def test_through_a_reader() -> None:
    """The reader's head gives title and date, its body the text; the page itself is not asked."""
    body = f"{READER_HEAD}Published Time: 2026-08-09T08:00:00Z\n\nMarkdown Content:\n# Paper\n\n{SENTENCE * 5}"
    page, asked = await read_through(httpx2.Response(200, text=body))
    assert asked == [f"{READER}/{TARGET}"]
    assert (page.title, page.published, page.via) == ("The paper lighthouse", "2026-08-09T08:00:00Z", "reader")
    assert page.text.startswith("# Paper\n\nThe paper lighthouse on")
    assert (page.url, page.flags) == (TARGET, ())


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
    assert asked[-1] == TARGET


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
        reader = PageReader(web, READER)
        await reader.read("http://nas.lan/page")
        with pytest.raises(ToolError, match="Not fetched"):
            await reader.read("http://10.0.0.1/page")
    assert asked == ["nas.lan"]
