"""Office files and books: written by the libraries that people write them with, or packed by hand to do harm."""

import io
import zipfile
from collections.abc import Iterable, Mapping
from datetime import date

TYPES = b"<?xml version='1.0'?><Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
ROWS = (("Year", "Ships", "Tonnes"), ("2025", "112", "9,400"))
LONG_MEMO = "The quay costs 4.5 million euros, and the crane behind it another million."


def word_file() -> bytes:
    """A memo with a heading, a list and a table."""
    import docx  # noqa: PLC0415 - slow to import, for few tests

    file, memo = io.BytesIO(), docx.Document()
    memo.core_properties.title, memo.core_properties.author = "Harbour plan", "A. Koch"
    memo.add_heading("Costs", 1)
    memo.add_paragraph(LONG_MEMO)
    memo.add_paragraph("first", style="List Bullet")
    table = memo.add_table(len(ROWS), len(ROWS[0]))
    for number, row in enumerate(ROWS):
        for cell, text in zip(table.rows[number].cells, row, strict=True):
            cell.text = text
    memo.save(file)
    return file.getvalue()


def slides() -> bytes:
    """Two slides: lines with a note, and a table."""
    import pptx  # noqa: PLC0415 - as above
    from pptx.util import Length  # noqa: PLC0415 - as above

    file, deck = io.BytesIO(), pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes[0].text_frame.text, slide.shapes[1].text_frame.text = "Ferries", "Three lines\nTwo boats"  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - a shape with text
    slide.notes_slide.notes_text_frame.text = "Thank the crew"  # pyright: ignore[reportOptionalMemberAccess] - it has one
    table = deck.slides.add_slide(deck.slide_layouts[6]).shapes.add_table(2, 3, *[Length(9_000)] * 4).table
    for number, row in enumerate(ROWS):
        for place, text in enumerate(row):
            table.cell(number, place).text = text
    deck.save(file)
    return file.getvalue()


def workbook() -> bytes:
    """Two sheets with text, numbers and a date."""
    import openpyxl  # noqa: PLC0415 - as above

    file, book = io.BytesIO(), openpyxl.Workbook()
    sheet = book.create_sheet("Budget", 0)
    for row in (("Item", "Euro", "When"), ("Crane", 1_250_000.5, date(2026, 3, 1)), (None, None), ("Quay", 4, True)):
        sheet.append(row)
    staff = book.create_sheet("Staff", 1)
    staff.append(("Name", "Hours"))
    staff.append(("Ada", 38))
    book.save(file)
    return file.getvalue()


def book(chapters: Iterable[bytes], names: Iterable[str] = ()) -> bytes:
    """An EPUB with these chapters; `names` are further ones that its list of chapters names."""
    texts = {f"text/c {number}.xhtml": chapter for number, chapter in enumerate(chapters)}
    hrefs = [*(name.replace(" ", "%20") for name in texts), *names]
    items = "".join(f"<item id='i{number}' href='{href}'/>" for number, href in enumerate(hrefs))
    order = "".join(f"<itemref idref='i{number}'/>" for number in range(len(hrefs)))
    package = (
        "<?xml version='1.0'?><!DOCTYPE package PUBLIC 'x' 'http://127.0.0.1:9/oeb.dtd'>"
        "<package xmlns:dc='http://purl.org/dc/elements/1.1/'><metadata><dc:title>Tides</dc:title>"
        "<dc:creator>M. Sand</dc:creator><dc:language>en-GB</dc:language><dc:date>2019-05-01</dc:date></metadata>"
        f"<manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    container = "<container><rootfiles><rootfile full-path='OEBPS/book.opf'/></rootfiles></container>"
    return packed(
        {
            "mimetype": b"application/epub+zip",
            "META-INF/container.xml": container.encode(),
            "OEBPS/book.opf": package.encode(),
            **{f"OEBPS/{name}": text for name, text in texts.items()},
        }
    )


def packed(files: Mapping[str, bytes]) -> bytes:
    """A ZIP archive; its first file is not compressed, as the type of an EPUB must not be."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, content) in enumerate(files.items()):
            archive.writestr(name, content, None if number else zipfile.ZIP_STORED)
    return file.getvalue()


def memo_of(xml: bytes, relations: str = "", more: Mapping[str, bytes] | None = None) -> bytes:
    """A Word file whose text is this XML; `relations` are the files it refers to."""
    listed = f"<Relationships xmlns='{RELATIONS}'>{relations}</Relationships>".encode()
    main = f"<Relationship Id='r' Type='{OFFICE}/officeDocument' Target='word/document.xml'/>"
    top = f"<Relationships xmlns='{RELATIONS}'>{main}</Relationships>".encode()
    files = {"[Content_Types].xml": TYPES, "_rels/.rels": top, "word/_rels/document.xml.rels": listed}
    return packed({**files, "word/document.xml": xml, **(more or {})})


def memo_xml(text: str, declared: str = "", encoding: str = "utf-8") -> bytes:
    """The text of a Word file, with declarations before it."""
    body = f"<w:document xmlns:w='{WORD}'><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>"
    return f"<?xml version='1.0' encoding='{encoding}'?>{declared}{body}".encode(encoding)


def far_cell() -> bytes:
    """A workbook with two cells at the two ends of the largest sheet."""
    import openpyxl  # noqa: PLC0415 - as above

    file, whole = io.BytesIO(), openpyxl.Workbook()
    sheet = whole.create_sheet("Far", 0)
    sheet["A1"], sheet["XFD1048576"] = "near", "far"
    whole.save(file)
    return file.getvalue()
