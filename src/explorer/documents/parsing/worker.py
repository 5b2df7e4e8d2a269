"""The process that parses documents of one kind (`python launch.py KIND MEMORY_BYTES CPU_S`); a document may crash it.

A confined process can open no file, so a module or a table that is missing then is missing for good. Each kind has
processes of its own: loading all libraries in each of them would take twice as long as most documents.

It loads its parsers, then takes away from itself everything but its pipes (`confine.py`), and only then reads. It has
no keys, and limits of memory and of CPU time for each document. It ends when the engine closes the process's stdin,
or, if the engine has ended, after the current document.
"""

import codecs
import contextlib
import gc
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from explorer.documents.parsing.confine import confine
from explorer.documents.parsing.document import QUESTION, ParseReply, answer_bytes, question_of
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
from explorer.documents.parsing.reading import read_once
from explorer.schema.errors import ToolError

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
    POSTS: (f"{PARSING}.html_pages",),
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


LEAST_FREE = 3
"""The first descriptor after stdin, stdout and stderr."""
MOST_DESCRIPTORS = 4_096


def main(kind: str, memory_bytes: int, cpu_s: int) -> None:
    """Answer requests until the engine closes stdin."""
    logging.disable(logging.CRITICAL)  # the document's flags say what a parser could not read
    limit_memory(memory_bytes)
    limit_time(cpu_s)
    load(kind)
    questions, answers = open_pipes()
    _say(answers, ParseReply(confinement=confine()))
    while head := questions.read(QUESTION.size):
        limit_time(cpu_s)
        head_bytes, body_bytes = QUESTION.unpack(head)
        question = question_of(questions.read(head_bytes))
        body = questions.read(body_bytes)
        try:
            document = read_once(kind, body, url=question.url, content_type=question.content_type)
        except ToolError as error:
            _say(answers, ParseReply(problem=error.message))
        else:
            _say(answers, ParseReply(document=document))
    os._exit(0)  # nothing is left to tidy, and large libraries are slow to leave


def open_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the two pipes to the engine; they, stderr and nothing else stay open."""
    os.closerange(LEAST_FREE, MOST_DESCRIPTORS)
    questions, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # a parser that reads or prints must not touch what is said here
        os.dup2(nothing, stream)
    os.close(nothing)
    return os.fdopen(questions, "rb"), os.fdopen(answers, "wb")


def _say(answers: BinaryIO, answer: ParseReply) -> None:
    with contextlib.suppress(BrokenPipeError):  # the engine is gone; the next reading sees it
        answers.write(answer_bytes(answer))
        answers.flush()


def limit_memory(memory_bytes: int) -> None:
    """Limit the address space of this process, and forbid it to write files."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # systems without such limits; time is limited anyway
        import resource  # noqa: PLC0415 - not everywhere

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def limit_time(cpu_s: int) -> None:
    """Limit the CPU seconds for the next document, not counting past ones; the system ends a process that uses more."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - not everywhere

        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = int(usage.ru_utime + usage.ru_stime)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (used + cpu_s + 1, hard))
