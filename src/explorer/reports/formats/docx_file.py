"""A report as a Word file, made of its tokens: text, styles, links and images; nothing that Word would run or load."""

from base64 import b64decode
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

from docx import Document
from docx.document import Document as WordDocument
from docx.image.exceptions import UnrecognizedImageError
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement  # pyright: ignore[reportUnknownVariableType]
from docx.oxml.ns import qn
from docx.shared import Cm, Pt, RGBColor
from docx.text.paragraph import Paragraph
from docx.text.run import Run
from markdown_it.token import Token

from explorer.reports.formats.document import CONTROLS, ReportDocument, report_tokens

INDENT_CM = 0.75
MOST_WIDTH = Cm(16)
LINK_COLOUR = RGBColor(0x0B, 0x57, 0xD0)
TITLE_CHARS = 255
"""The most that Word takes as a title."""


def docx_file(document: ReportDocument) -> bytes:
    """Return a report as a Word file."""
    word = Document()
    word.core_properties.title = _plain(document.title)[:TITLE_CHARS]
    word.core_properties.author = "explorer"
    _Writer(word).write(report_tokens(document))
    if document.facts:
        word.add_heading("About this report", 2)
        table = word.add_table(0, 2, style="Table Grid")
        for row in document.facts:
            for cell, text in zip(table.add_row().cells, row, strict=True):
                cell.text = _plain(text)
    content = BytesIO()
    word.save(content)
    return content.getvalue()


class _Writer:
    """Turns tokens into paragraphs, one after another."""

    def __init__(self, word: WordDocument) -> None:
        self._word = word
        self._lists: list[int | None] = []
        """The next number of each list that is open; None for one with points."""
        self._marker, self._bookmark = "", ""
        self._quotes = self._bookmarks = 0
        self._heading = ""
        self._rows: list[list[Sequence[Token]]] | None = None
        """The cells of the table that is open."""

    def write(self, tokens: Sequence[Token]) -> None:
        """Write all blocks."""
        steps: dict[str, Callable[[Token], object]] = {
            "heading_open": self._heading_mark,
            "heading_close": self._heading_mark,
            "bullet_list_open": lambda _token: self._lists.append(None),
            "ordered_list_open": lambda token: self._lists.append(int(token.attrs.get("start", 1))),
            "bullet_list_close": lambda _token: self._lists.pop(),
            "ordered_list_close": lambda _token: self._lists.pop(),
            "list_item_open": self._open_item,
            "blockquote_open": self._quote_mark,
            "blockquote_close": self._quote_mark,
            "fence": self._code,
            "code_block": self._code,
            "hr": lambda _token: self._line("* * *"),
            "table_open": self._open_table,
            "tr_open": lambda _token: self._rows.append([]) if self._rows is not None else None,
            "table_close": self._close_table,
            "inline": self._inline,
        }
        for token in tokens:
            if token.type in steps:
                steps[token.type](token)

    def _heading_mark(self, token: Token) -> None:
        self._heading = token.tag if token.nesting > 0 else ""

    def _quote_mark(self, token: Token) -> None:
        self._quotes += token.nesting

    def _open_item(self, token: Token) -> None:
        number = self._lists[-1]
        self._marker = "•\t" if number is None else f"{number}.\t"
        self._lists[-1] = None if number is None else number + 1
        self._bookmark = str(token.attrs.get("id", ""))

    def _open_table(self, _token: Token) -> None:
        self._rows = []

    def _close_table(self, _token: Token) -> None:
        rows, self._rows = self._rows or [], None
        table = self._word.add_table(len(rows), max(map(len, rows), default=1), style="Table Grid")
        for row, cells in zip(table.rows, rows, strict=True):
            for cell, children in zip(row.cells, cells, strict=False):
                _write_line(cell.paragraphs[0], children)

    def _code(self, token: Token) -> None:
        _set_code(self._line().add_run(_plain(token.content.rstrip("\n"))))

    def _inline(self, token: Token) -> None:
        if self._rows is not None:
            self._rows[-1].append(token.children or ())
        elif self._heading:
            _write_line(self._word.add_heading("", int(self._heading[1])), token.children or ())
        else:
            _write_line(self._line(), token.children or ())

    def _line(self, text: str = "") -> Paragraph:
        """Return a new paragraph at the depth of its list, with its number or point."""
        paragraph = self._word.add_paragraph("", style="Quote" if self._quotes else None)
        depth = len(self._lists) + self._quotes
        if depth:
            paragraph.paragraph_format.left_indent = Cm(INDENT_CM * depth)
            paragraph.paragraph_format.space_after = Pt(2)
        if self._marker:
            # Numbers are text: Word would continue the numbers of the list before, and citations name these.
            paragraph.paragraph_format.first_line_indent = Cm(-INDENT_CM)
            stops: Any = paragraph.paragraph_format.tab_stops
            stops.add_tab_stop(Cm(INDENT_CM * depth))
        if self._bookmark:
            self._bookmarks += 1
            _add_bookmark(paragraph, self._bookmark, self._bookmarks)
        paragraph.add_run(self._marker + text)
        self._marker = self._bookmark = ""
        return paragraph


def _write_line(paragraph: Paragraph, children: Sequence[Token]) -> None:
    """Write a line with its emphasis, code, links and images."""
    bold = italic = 0
    link: Any = None
    for child in children:
        nesting = child.nesting
        match child.type:
            case "strong_open" | "strong_close":
                bold += nesting
            case "em_open" | "em_close":
                italic += nesting
            case "link_open":
                link = _add_link(paragraph, str(child.attrs["href"]))
            case "link_close":
                link = None
            case "image":
                _add_image(paragraph, child)
            case _:
                run = _add_run(paragraph, child)
                run.bold, run.italic = bold > 0 or None, italic > 0 or None
                if link is not None:
                    run.font.color.rgb, run.font.underline = LINK_COLOUR, True
                    link.append(run._r)  # noqa: SLF001 - the library has no links of its own


def _add_run(paragraph: Paragraph, child: Token) -> Run:
    words = {"softbreak": " ", "hardbreak": "\n"}
    run = paragraph.add_run(words.get(child.type) or _plain(child.content))
    if child.type == "code_inline":
        _set_code(run)
    return run


def _set_code(run: Run) -> None:
    run.font.name, run.font.size = "Courier New", Pt(9)


def _add_link(paragraph: Paragraph, href: str) -> Any:  # noqa: ANN401 - an element of lxml
    link: Any = _element("w:hyperlink")
    if href.startswith("#"):
        link.set(qn("w:anchor"), href[1:])
    else:
        name = paragraph.part.relate_to(_plain(href), RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
        link.set(qn("r:id"), name)
    _xml_of(paragraph).append(link)
    return link


def _element(tag: str) -> Any:  # noqa: ANN401 - an element of lxml
    return OxmlElement(tag)  # pyright: ignore[reportUnknownVariableType] - half typed


def _xml_of(paragraph: Paragraph) -> Any:  # noqa: ANN401 - an element of lxml
    return paragraph._p  # noqa: SLF001 - the library has no links and no bookmarks of its own


def _add_bookmark(paragraph: Paragraph, name: str, number: int) -> None:
    for tag in ("w:bookmarkStart", "w:bookmarkEnd"):
        mark: Any = _element(tag)
        mark.set(qn("w:id"), str(number))
        if tag == "w:bookmarkStart":
            mark.set(qn("w:name"), name)
        _xml_of(paragraph).append(mark)


def _add_image(paragraph: Paragraph, child: Token) -> None:
    content = b64decode(str(child.attrs["src"]).partition(",")[2])
    try:
        picture: Any = paragraph.add_run().add_picture(BytesIO(content))
    except (UnrecognizedImageError, ValueError, ZeroDivisionError):
        paragraph.add_run(_plain(f"[image: {child.content}]"))
        return
    if picture.width > MOST_WIDTH:
        picture.height = Cm(picture.height.cm * MOST_WIDTH.cm / picture.width.cm)
        picture.width = MOST_WIDTH


def _plain(text: str) -> str:
    return CONTROLS.sub("", text)
