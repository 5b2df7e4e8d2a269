"""A report as HTML, PDF, Word and JSON: nothing of a page in it runs or loads, and everything of it is kept."""

import json
import re
import sys
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from docx import Document
from PIL import Image
from pypdf import PdfReader

from explorer.cli.report_files import write_report
from explorer.reports.formats.document import ReportDocument
from explorer.reports.formats.docx_file import docx_file
from explorer.reports.formats.html_page import html_page
from explorer.reports.formats.writers import FORMATS, check_pango, format_of, pdf_file
from explorer.run.report_document import document_of
from explorer.schema.errors import ConfigError

CHINESE = "值得注意的新闻"
REPORT = """\
---
question: "What now? <script>alert(1)</script>"
run_id: 20260314-x
status: partial
reason: 2 unsupported citations <img src=http://evil.example/r.png onerror=alert(1)>
models: [offline]
cost_usd: null
citations: {total: 3, supported: 1, not_found: 2}
language: zh" onload="alert(1)
---

> **Status: partial** because of 2 citations. ⚠

# 值得注意的新闻 & <b>news</b>

Prices rose by 38 % [1]. See https://ok.example/a?b=1&c=2 and <https://auto.example/>[2][9]. ⚠
<script>alert(1)</script><img src="http://evil.example/x.png"><iframe src="file:///etc/passwd"></iframe>
=cmd|' /C calc'!A0 &#60;script&#62; <!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>&x;

![far](http://evil.example/a.png) ![chart](charts/a.png) ![up](../../etc/passwd) ![page](page.svg)
[js](javascript:alert(1)) [data](data:text/html,x) [file](file:///etc/passwd) [rel](other.md)
[ok](https://ok.example/b "x\" onmouseover=alert(1)") [mail](mailto:a@ok.example)

| a | b [1] |
|---|---|
| <img src=http://evil.example/t.png> | [t](https://t.example) **bold** |
| =HYPERLINK("http://evil.example") | `code [1]` |

1. one
   - nested *point*
2. two

```html
<script>alert(2)</script> [1]
```

---

## References

1. A price. ok.example, 2026-03-14, https://ok.example/price `S4`
2. Brackets \\[x\\] \\<b\\>. evil.example, https://evil.example/"onmouseover="alert(1) `S2`

### Further links

- More. more.example, https://more.example `S9`
"""
ALLOWED = {"a": {"href", "rel", "title"}, "img": {"src", "alt"}, "li": {"id"}, "ol": {"start"}}
WEB = re.compile(r"https?://|mailto:")


def picture(size: int = 20) -> bytes:
    """A small image."""
    content = BytesIO()
    Image.new("RGB", (size, size), "red").save(content, "PNG")
    return content.getvalue()


FILES = {"charts/a.png": picture(), "page.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>"}
DOCUMENT = ReportDocument(REPORT, read_image=FILES.get)


class Elements(HTMLParser):
    """Collects the elements and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep text."""
        self.text += data


def test_a_page_has_nothing_that_runs_or_loads() -> None:
    """Only text, web links and the run's own image are left of a hostile report, and its words are all still there."""
    page = html_page(DOCUMENT)
    head, _, body = page.partition("<body>")
    assert "default-src 'none'" in head
    assert "<html>" in head  # the language was none
    found = Elements(body)
    assert not {"script", "iframe", "object", "link", "style", "meta", "form", "svg", "b"} & {
        tag for tag, _ in found.found
    }
    for tag, attributes in found.found:
        assert set(attributes) <= ALLOWED.get(tag, {"class"}), (tag, attributes)
    images = [attributes["src"] or "" for tag, attributes in found.found if tag == "img"]
    assert [image.partition(",")[0] for image in images] == ["data:image/png;base64"]
    links = [attributes["href"] or "" for tag, attributes in found.found if tag == "a"]
    assert all(WEB.match(link) or re.fullmatch(r"#ref-[12]", link) for link in links), links
    for words in (
        "<script>alert(1)</script>",
        "<!ENTITY x",
        "[image: far]",
        "[image: up]",
        "[image: page]",
        "[9]",
        "=cmd|",
    ):
        assert words in found.text, words


def test_references_are_linked_and_the_status_is_told() -> None:
    """Each citation leads to its entry, addresses are links, and what the engine found is in the file."""
    found = Elements(html_page(DOCUMENT).partition("<body>")[2])
    links = [attributes["href"] for tag, attributes in found.found if tag == "a"]
    assert links.count("#ref-1") == 2  # in the text and in the table; code cites nothing
    assert "https://ok.example/a?b=1&c=2" in links
    assert "https://ok.example/price" in links
    assert [attributes["id"] for tag, attributes in found.found if tag == "li" and attributes] == ["ref-1", "ref-2"]
    for words in ("status", "partial", "2 unsupported citations", "total 3, supported 1, not found 2", "⚠"):
        assert words in found.text, words


def parts_of(content: bytes) -> dict[str, str]:
    """The XML of a Word file by the names of its parts."""
    with zipfile.ZipFile(BytesIO(content)) as packed:
        return {name: packed.read(name).decode() for name in packed.namelist() if name.endswith((".xml", ".rels"))}


def test_a_word_file_has_text_and_links_only() -> None:
    """No entity, field, macro or remote image; web links only; citations lead to bookmarks; numbers are as cited."""
    content = docx_file(DOCUMENT)
    parts = parts_of(content)
    assert not any("<!ENTITY" in text or "<!DOCTYPE" in text for text in parts.values())
    body = parts["word/document.xml"]
    assert not re.search(r"w:(fldSimple|instrText|object|altChunk)|r:link", body)
    external = re.findall(
        r'Type="([^"]*)" Target="([^"]*)" TargetMode="External"', parts["word/_rels/document.xml.rels"]
    )
    assert external
    assert all(kind.endswith("/hyperlink") and WEB.match(target) for kind, target in external), external
    assert set(re.findall(r'w:anchor="([^"]*)"', body)) == set(
        re.findall(r'w:bookmarkStart [^>]*w:name="([^"]*)"', body)
    )
    word: Any = Document(BytesIO(content))
    lines = [paragraph.text for paragraph in word.paragraphs]
    assert any(line.startswith(CHINESE) for line in lines)
    assert any(line.startswith("2.\tBrackets") for line in lines)
    cells = [cell.text for table in word.tables for row in table.rows for cell in row.cells]
    assert "<img src=http://evil.example/t.png>" in cells
    assert "2 unsupported citations <img src=http://evil.example/r.png onerror=alert(1)>" in cells
    assert len(word.inline_shapes) == 1


def test_characters_that_xml_forbids_are_left_out() -> None:
    """A page's control characters and lone surrogates do not keep a report from being written."""
    odd = ReportDocument(
        "# A\x00\x0b title\ud800\n\n[x](https://a.example/\x1b\uffff) \x9b31m https://b.example/\x07\n"
    )
    word: Any = Document(BytesIO(docx_file(odd)))
    assert [one.text for one in word.paragraphs][:1] == ["A title"]
    assert any("https://b.example/" in one.text for one in word.paragraphs)
    assert "\x9b" not in html_page(odd).encode("utf-8", "replace").decode()


@pytest.fixture
def pango() -> None:
    """Pango, without which no PDF can be made."""
    try:
        check_pango()
    except ConfigError as error:
        pytest.skip(f"{error.message}: {error.hint}")


def actions_of(pdf: PdfReader) -> list[str]:
    """The kinds and addresses of the actions of all links and other annotations of a PDF."""
    found: list[str] = []
    for page in pdf.pages:
        annotations: Any = page.get("/Annots", [])
        for annotation in annotations:
            action: Any = annotation.get_object().get("/A", {"/S": "/GoTo"})
            found.append(f"{action['/S']} {action.get('/URI', '')}".strip())
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("pango")
def test_a_pdf_has_text_and_links_only() -> None:
    """No script, file or remote image in it; links to the web and within it; the words can be read."""
    content, warning = pdf_file(ReportDocument(REPORT.replace(CHINESE, "Ψ news"), read_image=FILES.get))
    assert warning == ""
    for word in (b"/JavaScript", b"/Launch", b"/EmbeddedFile", b"/OpenAction", b"/AcroForm"):
        assert word not in content
    pdf = PdfReader(BytesIO(content))
    text = "\n".join(page.extract_text() for page in pdf.pages)
    for words in ("<script>alert(1)</script>", "Ψ news", "partial", "References"):
        assert words in text, words
    kinds = [action for action in actions_of(pdf) if not action.startswith("/URI")]
    assert all(kind == "/GoTo" for kind in kinds), kinds
    links = {action.removeprefix("/URI ") for action in actions_of(pdf)} - {"/GoTo"}
    assert "https://ok.example/price" in links
    assert all(WEB.match(link) for link in links), links


@pytest.mark.slow
@pytest.mark.usefixtures("pango")
def test_letters_without_a_font_are_not_passed_over() -> None:
    """A few are warned of with what to install; a text of them is refused, since nobody could read it."""
    script = "".join(map(chr, range(0x12000, 0x12010)))  # cuneiform, which few machines have
    if "install" not in pdf_file(ReportDocument(f"# A title\n\n{'word ' * 200}{script}"))[1]:
        pytest.skip("this machine has a font for cuneiform")
    with pytest.raises(ConfigError, match="no font on this machine") as refused:
        pdf_file(ReportDocument(script))
    assert "fonts-noto-cjk" in refused.value.hint


@pytest.mark.slow
@pytest.mark.usefixtures("pango")
def test_an_image_that_unpacks_to_gigabytes_is_words() -> None:
    """A small file with many pixels is named and not unpacked."""
    large = BytesIO()
    Image.new("1", (30_000, 30_000)).save(large, "PNG")
    content, _ = pdf_file(ReportDocument("![map](map.png)", read_image=lambda _path: large.getvalue()))
    assert "[image: map]" in PdfReader(BytesIO(content)).pages[0].extract_text()


def test_json_has_the_text_the_facts_and_the_check(tmp_path: Path) -> None:
    """References carry their numbers and sources, and the claims are those of the run."""
    (tmp_path / ".explorer").mkdir()
    (tmp_path / ".explorer/claims.jsonl").write_text('{"sentence": "Prices rose", "verdict": "not_found"}\n')
    (tmp_path / ".explorer/sources.jsonl").write_text('{"id": "S4", "url": "https://ok.example/price"}\n')
    target = tmp_path / "out.json"
    write_report(document_of(REPORT, tmp_path), target, overwrite=False)
    found = json.loads(target.read_text())
    assert (found["version"], found["about"]["status"]) == (1, "partial")
    assert found["references"][0] == {"number": 1, "id": "S4", "url": "https://ok.example/price"}
    assert [claim["verdict"] for claim in found["claims"]] == ["not_found"]
    assert found["markdown"].startswith("> **Status: partial**")


def test_no_file_is_replaced_unasked_and_nothing_half_written_is_left(tmp_path: Path) -> None:
    """A file that came meanwhile stays; with consent it is replaced; no other file is there afterwards."""
    target = tmp_path / "out.md"
    target.write_text("mine")
    document = document_of(REPORT, tmp_path)
    with pytest.raises(ConfigError, match="exists already"):
        write_report(document, target, overwrite=False)
    assert target.read_text() == "mine"
    write_report(document, target, overwrite=True)
    assert target.read_text() == REPORT
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(("suffix", "package"), [(".docx", "docx"), (".PDF", "weasyprint")])
def test_a_missing_package_is_named_with_its_command(
    suffix: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is paid."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=package) as refused:
        format_of(suffix)
    assert f"pip install 'explorer[{FORMATS[suffix.lower()].extra}]'" in refused.value.hint


def test_damaged_rows_do_not_keep_a_report_from_being_written(tmp_path: Path) -> None:
    """What a carried run says of its claims may be anything."""
    (tmp_path / ".explorer").mkdir()
    (tmp_path / ".explorer/claims.jsonl").write_text('[1]\n{"sentence":')
    assert document_of("# A", tmp_path).claims == []


Writer = Callable[[ReportDocument], object]


@pytest.mark.parametrize("write", [html_page, docx_file])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\nstatus: [\n---\n# A",
        "---\nstatus: {a: [1, {b: null}]}\nlanguage: 7\n---\n",
        "# A\n\n| a |\n|---|\n| b | c | d |\n",
        "- " * 300 + "deep",
        "> " * 300 + "deep",
        "1. a\n\n   # heading in a list\n\n   | t |\n   |---|\n   | [x](y) |\n",
        "## References\n\n- no numbers\n",
        "![](a.png) [](https://a.example) ![x][y]\n\n[y]: javascript:1\n",
    ],
)
def test_odd_reports_are_written(text: str, write: Writer) -> None:
    """Nothing that markdown can be keeps a report from being written."""
    assert write(ReportDocument(text))
