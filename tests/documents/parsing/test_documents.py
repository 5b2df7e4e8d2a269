"""What each kind of document becomes, read in this process."""

import io
import json

import pytest
from reportlab.pdfgen.canvas import Canvas

from documents.parsing.documents import laughs, pdf_of, pdf_of_many
from explorer.documents.parsing.document import Document
from explorer.documents.parsing.html_pages import markdown_of
from explorer.documents.parsing.judgement import declared_language, language_of, without_targets, words
from explorer.documents.parsing.kinds import kind_of, text_of
from explorer.documents.parsing.reading import MAX_TEXT_CHARS, read_document
from explorer.schema.errors import ToolError

SENTENCE = "The paper lighthouse on the northern pier was folded by hand from a single sheet of blue card. "
RSS = """<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0"><channel><title>Harbour News</title><language>en-gb</language><description>All about it</description>
<item><title>One &amp;amp; two</title><link>https://a.example/1</link><pubDate>Mon, 10 Aug 2026 10:00:00 GMT</pubDate>
<description>&lt;p&gt;Folded, see
&lt;a href="https://b.example/x"&gt;the plan&lt;/a&gt;.&lt;/p&gt;&lt;p&gt;More.&lt;/p&gt;</description>
</item><item><title>Second</title><link>https://a.example/2</link></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title>Hafen</title>
<updated>2026-08-09T00:00:00Z</updated>
<entry><title>Eins</title><link href="https://a.example/1"/><author><name>Ada</name></author>
<updated>2026-08-08T01:02:03Z</updated>
<content type="html">&lt;ul&gt;&lt;li&gt;ein Bogen&lt;/li&gt;&lt;/ul&gt;</content>
</entry></feed>"""
JSON_FEED = {
    "version": "https://jsonfeed.org/version/1.1",
    "title": "Harbour",
    "items": [
        {"url": "https://a.example/1", "date_published": "2026-08-01", "content_html": "<p>Folded.</p>"},
        {"id": 7, "title": "Two", "authors": [{"name": "Ada"}], "content_text": "Plain."},
    ],
}


def read(kind: str, body: str | bytes, url: str = "https://harbour.example/a/notes.txt") -> Document:
    """Read a document."""
    return read_document(kind, body.encode() if isinstance(body, str) else body, url=url)


def test_rss() -> None:
    """A feed is a list of entries: title and date, link, summary with its links."""
    found = read("feed", RSS)
    assert (found.title, found.language, found.published) == ("Harbour News", "en", "2026-08-10")
    assert found.text == (
        "# Harbour News\n\nAll about it\n\n1. One & two (2026-08-10)\n   https://a.example/1\n"
        "   Folded, see [the plan](https://b.example/x).\n   More.\n\n2. Second\n   https://a.example/2"
    )


def test_atom() -> None:
    """Atom's entries have authors and contents."""
    found = read("feed", ATOM)
    assert (found.title, found.published) == ("Hafen", "2026-08-09")
    assert found.text.endswith("1. Eins (2026-08-08)\n   https://a.example/1\n   by Ada\n   - ein Bogen")


def test_json_feed() -> None:
    """A feed in JSON reads like the others; entries may lack titles."""
    found = read("feed", json.dumps(JSON_FEED))
    assert found.text == (
        "# Harbour\n\n1. untitled (2026-08-01)\n   https://a.example/1\n   Folded.\n\n2. Two\n   by Ada\n   Plain."
    )


@pytest.mark.slow
def test_a_long_feed() -> None:
    """A feed of hundreds of entries is cut, and says so; a whole article in an entry too."""
    item = "<item><title>T</title><description>" + "word " * 2_000 + "</description></item>"
    found = read("feed", f"<rss version='2.0'><channel><title>x</title>{item * 301}</channel></rss>")
    assert "truncated" in found.flags
    assert "\n\n300. T" in found.text
    assert len(found.text) < 300 * 4_100


@pytest.mark.parametrize("body", ["<rss><channel/></rss>", "{broken", "<root>no feed</root>"])
def test_what_is_no_feed(body: str) -> None:
    """What only looks like a feed is given as it is."""
    assert read("feed", body).text == body


def test_a_laughing_feed() -> None:
    """A feed with entities of its own is not read at all."""
    with pytest.raises(ToolError, match="declares entities"):
        read("feed", laughs())


def test_json() -> None:
    """JSON is laid out, one value a line, in its own letters; its title is its own or the file's name."""
    found = read("json", '{"title": "Gr\\u00fc\\u00dfe", "a": [1, {"b": null}]}')
    assert found.title == "Gr\u00fc\u00dfe"
    assert found.text == '{\n "title": "Gr\u00fc\u00dfe",\n "a": [\n  1,\n  {\n   "b": null\n  }\n ]\n}'
    assert read("json", "[1]").title == "notes.txt"


@pytest.mark.parametrize("body", ["{broken", "[" * 100_000, '{"a": 1}\n{"a": 2}', "1" * 2_000_001])
def test_json_that_is_none(body: str) -> None:
    """What is no JSON, or too deep or long to be laid out, stays as it is."""
    assert read("json", body).text == body


def test_text() -> None:
    """A text is not touched; its first heading is its title."""
    assert read("text", " # Heading \n\ntext ") == Document(title="Heading", text="# Heading \n\ntext")
    assert read("text", "plain").title == "notes.txt"


def test_a_very_long_text() -> None:
    """Beyond some millions of characters a text is cut, and says so."""
    found = read("text", "x" * (MAX_TEXT_CHARS + 1))
    assert (len(found.text), found.flags) == (MAX_TEXT_CHARS, ("truncated",))


def test_a_kind_nobody_reads() -> None:
    """An unknown kind is an error with words."""
    with pytest.raises(ToolError, match="'rtf' is not read"):
        read("rtf", "x")


def test_pdf() -> None:
    """Each page has its mark; title, author, date and language are the file's."""
    canvas = Canvas(file := io.BytesIO(), lang="en-GB")
    canvas.setTitle("The paper lighthouse")
    canvas.setAuthor("Ada Example")
    for line in ("First page, folded by hand, soft-", "ware and all"):
        canvas.drawString(72, 700 if line[0] == "F" else 680, line)
    canvas.showPage()
    canvas.drawString(72, 700, "Second page")
    canvas.save()
    found = read("pdf", file.getvalue())
    assert (found.title, found.author, found.pages) == ("The paper lighthouse", "Ada Example", 2)
    assert (len(found.published), found.flags, found.language) == (10, (), "en")
    assert found.text == "[page 1]\nFirst page, folded by hand, software and all\n\n[page 2]\nSecond page"


@pytest.mark.parametrize(
    ("facts", "title"),
    [("", "On folding"), ("/Title (draft7.docx)", "On folding"), ("/Title (Microsoft Word - Plan)", "Plan")],
)
def test_titles_of_pdfs(facts: str, title: str) -> None:
    """A title that is none gives way to the first line."""
    assert read("pdf", pdf_of(["On folding"], facts)).title == title


def test_dates_of_pdfs() -> None:
    """The date of making is the date; nonsense is none."""
    assert read("pdf", pdf_of(["x"], "/CreationDate (D:20260809120000Z)")).published == "2026-08-09"
    assert read("pdf", pdf_of(["x"], "/CreationDate (long ago)")).published == ""


def test_scanned_pdfs() -> None:
    """Pages that are pictures are told by a flag, with how many there are."""
    found = read("pdf", pdf_of(["", "", ""]))
    assert (found.text, found.flags, found.pages) == ("", ("no_text_layer",), 3)
    mixed = read("pdf", pdf_of(["A title", "", ""]))
    assert (mixed.text, mixed.flags) == ("[page 1]\nA title", ("no_text_layer",))
    assert read("pdf", pdf_of(["One", "", "Three"])).flags == ()


def test_long_pdfs() -> None:
    """Of ten thousand pages a thousand are read, and the text says which are not."""
    found = read("pdf", pdf_of_many(10_000))
    assert (found.pages, found.flags) == (10_000, ("truncated",))
    assert found.text.endswith("[page 1000]\nAgain.\n\n[pages 1001-10000 are not read]")


def test_damaged_pdfs() -> None:
    """A PDF whose table of contents is lost is still read; without anything it is an error."""
    assert "Second" in read("pdf", pdf_of(["First", "Second"]).replace(b"\nstartxref\n", b"\nstartxref\n9")).text
    with pytest.raises(ToolError, match="damaged"):
        read("pdf", b"%PDF-1.7 ...")


@pytest.mark.slow
def test_locked_pdfs() -> None:
    """A PDF behind a password says so."""
    canvas = Canvas(file := io.BytesIO(), encrypt="secret")
    canvas.drawString(72, 700, "Locked")
    canvas.save()
    with pytest.raises(ToolError, match="password"):
        read("pdf", file.getvalue())


def test_main_content_where_trafilatura_finds_little() -> None:
    """Of a page it takes for navigation, the other extractor's content is given, links and all."""
    cards = "".join(
        f'<div class="card"><h3><a href="/p/{n}">Lamp {n}</a></h3>'
        f"<div>A blue lamp of folded card, number {n}.</div></div>"
        for n in range(40)
    )
    found = read(
        "html", f"<html lang='en'><title>Lamps</title><body><main><h1>All lamps</h1>{cards}</main></body></html>"
    )
    assert found.text.count("folded card") == 40
    assert "(https://harbour.example/p/39)" in found.text


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1_500, 30_000])
def test_deep_nesting(depth: int) -> None:
    """A page nested beyond reason is read as its words, at once."""
    assert "hello" in read("html", "<html><body>" + "<div>" * depth + "hello " * 100).text


def test_languages() -> None:
    """A page's own word for its language counts, unless it is written in other letters."""
    assert declared_language('<html class="x" lang="en-US">') == "en"
    assert declared_language('<html><meta property="og:locale" content="pt_BR">') == ""
    assert declared_language('<html><meta property="og:locale" content="pt-BR">') == "pt"
    assert declared_language("<html><meta content='de' http-equiv='Content-Language'>") == "de"
    chinese = "\u7eb8\u706f\u5854\u662f\u7528\u4e00\u5f20\u7eb8\u6298\u6210\u7684"
    assert language_of("en", chinese) == "zh"
    assert language_of("ja", chinese) == "ja"
    assert language_of("uk", "\u043c\u0430\u044f\u043a") == "uk"
    assert language_of("", "plain words") == ""
    assert language_of("fr", "123") == "fr"


def test_words() -> None:
    """Words are counted without addresses and bare marks, and in scripts without spaces too."""
    assert words("- one | two **three** [four](https://x.example/(a)b) 5%") == 5
    assert words("\u65e5\u672c\u8a9e") == 3
    assert without_targets('[a](b "title") [c](d(e)f)') == "[a] [c]"


def test_markdown() -> None:
    """Headings, lists, code and links survive; scripts and addresses that lead nowhere do not."""
    html = (
        "<h2>Head</h2><p>One <a href='/x y(1)'>two</a> <a href='#top'>top</a><br>line</p><ul><li>a<ul><li>b</ul></ul>"
        "<pre>if x &lt; 3:\n    y</pre><script>go()</script><a href='http://[bad'>bad</a><p>last<pre>open"
    )
    assert markdown_of(html, lambda address: f"https://a.example{address}") == (
        "## Head\n\nOne [two](https://a.example/x%20y%281%29) top\nline\n\n- a\n\n"
        "  - b\n\n```\nif x < 3:\n    y\n```\n\n"
        "[bad](https://a.examplehttp://[bad)\n\nlast\n\n```\nopen\n```"
    )


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b"%PDF-1.7", "text/html", "pdf"),
        (b"<!-- a --><!doctype html>", "", "html"),
        (b'<?xml version="1.0"?><rss version="2.0">', "text/xml", "feed"),
        (b'<?xml version="1.0"?>\n<!-- a -->\n<feed xmlns="x">', "application/xml", "feed"),
        (b"<root/>", "application/xml", "text"),
        (b'{"version": "https://jsonfeed.org/version/1"}', "application/json", "feed"),
        (b'{"a": 1}', "application/problem+json; charset=utf-8", "json"),
        (b"plain", "", "text"),
        (b"a\xff\x00", "", "binary"),
        (b"\x00\x01", "image/png", "image/png"),
        (b"<!-- -->" * 500, "", "text"),
    ],
)
def test_kinds(body: bytes, content_type: str, kind: str) -> None:
    """The first bytes decide, then the label."""
    assert kind_of(body, content_type) == kind


def test_characters_of_xml() -> None:
    """XML names its encoding itself."""
    body = '<?xml version="1.0" encoding="windows-1251"?><a>\u043c\u0430\u044f\u043a</a>'.encode("cp1251")
    assert "\u043c\u0430\u044f\u043a" in text_of(body)
