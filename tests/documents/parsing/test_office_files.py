"""Office files and books: what of their text arrives, with marks that a citation can be found by."""

from collections.abc import AsyncGenerator

import pytest

from documents.parsing.office_samples import LONG_MEMO, book, memo_of, memo_xml, packed, slides, word_file, workbook
from explorer.documents.corpus.folder import FoundFile
from explorer.documents.corpus.reading import read_file, readable_kind
from explorer.documents.parsing.document import NOT_READ, OWN_ENTITIES, Document
from explorer.documents.parsing.kinds import kind_of
from explorer.documents.parsing.parser import Parser
from explorer.documents.parsing.reading import read_once
from explorer.schema.errors import ToolError

CHAPTER = b"<html><head><title>no</title></head><body><h1>Ebb</h1><p>Six hours out.</p></body></html>"


@pytest.fixture
async def parser() -> AsyncGenerator[Parser]:
    """The engine's own parser."""
    async with Parser() as opened:
        yield opened


async def parsed(parser: Parser, body: bytes) -> Document:
    """A file as the engine reads it: by its bytes, in the confined process."""
    return await parser.parse(kind_of(body), body, url="file:x")


@pytest.mark.slow
async def test_a_word_file_is_read_with_headings_and_rows(parser: Parser) -> None:
    """Headings, lists and the rows of tables arrive in order, and the author with them."""
    memo = await parsed(parser, word_file())
    assert (memo.title, memo.author, memo.pages) == ("Harbour plan", "A. Koch", 0)
    assert memo.text == f"# Costs\n\n{LONG_MEMO}\n\n- first\n\nYear | Ships | Tonnes\n2025 | 112 | 9,400"


@pytest.mark.slow
async def test_slides_are_read_one_after_another(parser: Parser) -> None:
    """Each slide has its mark, its notes follow it, and a table is read in rows."""
    deck = await parsed(parser, slides())
    first, second = deck.text.split("\n\n[slide 2]\n")
    assert first == "[slide 1]\nFerries\nThree lines\nTwo boats\n\nNotes: Thank the crew"
    assert (second, deck.pages) == ("Year | Ships | Tonnes\n2025 | 112 | 9,400", 2)


@pytest.mark.slow
async def test_sheets_are_read_row_by_row(parser: Parser) -> None:
    """Each sheet has its mark and its name; numbers and dates are written as values, empty rows left out."""
    found = await read_file(parser, workbook(), FoundFile("b.xlsx", "b.xlsx", 1, 0, 0))
    assert found.text.startswith(
        "[sheet 1]\nBudget\n\nItem | Euro | When\nCrane | 1250000.5 | 2026-03-01\nQuay | 4 | TRUE\n\n[sheet 2]\nStaff"
    )
    assert [number for _, number in found.page_starts] == [1, 2]


@pytest.mark.slow
async def test_a_book_is_read_chapter_by_chapter(parser: Parser) -> None:
    """The chapters come in the order of the book with their marks, with its author, date and language."""
    tides = await parsed(parser, book([CHAPTER, b"<html><body><p>Flow.</p></body></html>"]))
    assert tides.text == "[chapter 1]\n# Ebb\n\nSix hours out.\n\n[chapter 2]\nFlow."
    assert (tides.title, tides.author, tides.published, tides.language) == ("Tides", "M. Sand", "2019-05-01", "en")


def test_other_archives_are_no_documents() -> None:
    """A ZIP archive of anything else is named as what it is, and not unpacked to find out."""
    assert kind_of(packed({"a.txt": b"x"}), "application/zip") == "application/zip"
    assert readable_kind(packed({"word/document.xml": b"x"}), "a.zip") == ""


def test_a_damaged_or_declaring_file_is_an_error_with_its_reason() -> None:
    """Half a file, XML that is none, and XML with entities of its own are refused in words the engine knows."""
    whole = memo_of(memo_xml("fine"))
    assert read_once("docx", whole).text == "fine"
    declared = "<!DOCTYPE w [<!ENTITY a 'aha'>]>"
    for body, problem in (
        (whole[: len(whole) // 2], NOT_READ),
        (memo_of(b"<w:document"), NOT_READ),
        (memo_of(memo_xml("&a;", declared)), OWN_ENTITIES),
        (memo_of(memo_xml("&a;", declared, "utf-16")), OWN_ENTITIES),
    ):
        with pytest.raises(ToolError, match=problem):
            read_once("docx", body)
