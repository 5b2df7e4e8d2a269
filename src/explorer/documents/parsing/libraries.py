"""What the parsers of each kind load at their first use, loaded before the process is confined.

A confined process can open no file, so a module or a table that is missing then is missing for good. Each kind has
processes of its own: loading all libraries in each of them would take twice as long as most documents.
"""

import codecs
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from explorer.documents.parsing.kinds import (
    COMMENTS,
    DOCX,
    ENTRIES,
    EPUB,
    FEED,
    HTML,
    JSON,
    PDF,
    PDF_AGAIN,
    POSTS,
    PPTX,
    XLSX,
)

CODECS = frozenset(
    """
    ascii latin-1 utf-8 utf-8-sig utf-7 utf-16 utf-16-be utf-16-le utf-32 utf-32-be utf-32-le idna
    iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9 iso8859-10 iso8859-11 iso8859-13
    iso8859-14 iso8859-15 iso8859-16 koi8-r koi8-t koi8-u kz1048 mac-cyrillic mac-roman tis-620 cp437 cp850 cp852 cp866
    cp874 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 big5 big5hkscs cp950 gb2312 gbk gb18030 hz
    cp932 euc-jp euc-jis-2004 shift-jis shift-jis-2004 iso2022-jp iso2022-jp-2 cp949 euc-kr johab iso2022-kr
    """.split()  # noqa: SIM905 - a list of names reads better as text
)
"""The encodings that browsers know, and a few more: Python loads each when a page first names it."""


PARSING = "explorer.documents.parsing"
PDFS = f"{PARSING}.pdf_files"
FEEDS = (f"{PARSING}.feeds", "feedparser", "xml.sax.expatreader", "_strptime")
OFFICE = (f"{PARSING}.office_files", "xml.etree.ElementTree", "pyexpat", "zlib")
RESILIPARSE = ("resiliparse.extract.html2text", "resiliparse.parse.html")
MODULES: Mapping[str, Sequence[str]] = {
    HTML: (f"{PARSING}.html_pages", "trafilatura", *RESILIPARSE, "_strptime"),
    PDF: (PDFS, "ctypes", "pypdfium2", "pypdfium2.raw"),
    PDF_AGAIN: (PDFS, "pypdf", "pypdf.filters", "pypdf._codecs._codecs"),
    FEED: FEEDS,
    ENTRIES: FEEDS,
    JSON: (),
    COMMENTS: (f"{PARSING}.comment_html",),
    POSTS: (f"{PARSING}.comment_html", f"{PARSING}.html_pages"),
    DOCX: (*OFFICE, "mammoth", "xml.dom.minidom", "xml.dom.expatbuilder"),
    PPTX: OFFICE,
    XLSX: (*OFFICE, "python_calamine"),
    EPUB: OFFICE,
}
"""The modules that reading a kind takes; others are imported by these."""

OF_THE_ENGINE = frozenset({COMMENTS, POSTS})
"""Kinds whose bytes the engine wrote, in UTF-8."""


def load(kind: str) -> None:
    """Load everything that reading documents of a kind takes."""
    gc.disable()
    for codec in CODECS if kind not in OF_THE_ENGINE else ():
        codecs.lookup(codec)
    for name in MODULES[kind]:
        import_module(name)
    if kind == HTML:
        _load_tables()
    gc.freeze()  # what is loaded stays for good: the collector need not look at it again for each page
    gc.enable()


def _load_tables() -> None:
    """Read the files that trafilatura and its libraries read at the first page that needs them."""
    from tld import get_tld  # noqa: PLC0415 - for HTML alone

    get_tld("https://www.a.co.uk/x", fail_silently=True)
    folder = Path(str(import_module("justext").__file__)).with_name("stoplists")
    words = _StopWords(file.read_bytes() for file in sorted(folder.glob("*.txt")))
    vars(import_module("trafilatura.external"))["JT_STOPLIST"] = words  # where it keeps them


class _StopWords:
    """The commonest words of a hundred languages, decoded when a page first needs them: one in a hundred does."""

    def __init__(self, files: Iterable[bytes]) -> None:
        self._files = tuple(files)

    def __iter__(self) -> Iterator[str]:
        return (word.decode("utf-8", "replace") for file in self._files for word in file.splitlines())
