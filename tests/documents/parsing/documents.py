"""Documents made by hand: PDFs of few bytes, and bombs that are small until they are read."""

import zlib
from collections.abc import Sequence

FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R/Resources<</Font<</F 3 0 R>>>>>>"
FLATE = b"/FlateDecode"


def pdf_of(texts: Sequence[str], facts: str = "", catalog: str = "") -> bytes:
    """A PDF with one line of text a page; an empty one is a page without any."""
    objects = [_catalog(catalog), b"", FONT]
    pages: list[int] = []
    for text in texts:
        drawn = f"BT /F 12 Tf 72 700 Td ({text}) Tj ET" if text else "0 0 100 100 re f"
        objects += [stream(zlib.compress(drawn.encode("latin-1"))), PAGE % (len(objects) + 1)]
        pages.append(len(objects))
    objects[1] = _pages(pages)
    return _file(objects, facts)


def pdf_of_many(pages: int) -> bytes:
    """A PDF that shows one page again and again."""
    objects = [_catalog(""), _pages([5] * pages), FONT, stream(zlib.compress(b"BT /F 9 Tf (Again.) Tj ET")), PAGE % 4]
    return _file(objects, "")


def pdf_with(content: bytes, filters: bytes = FLATE) -> bytes:
    """A PDF of one page with a stream of one's own."""
    return _file([_catalog(""), _pages([5]), FONT, stream(content, filters), PAGE % 4], "")


def stream(content: bytes, filters: bytes = FLATE) -> bytes:
    """A stream object."""
    return b"<</Length %d/Filter %s>>\nstream\n%s\nendstream" % (len(content), filters, content)


def squeezed(piece: bytes, times: int) -> bytes:
    """A piece so many times over, compressed without ever having been there as a whole."""
    press = zlib.compressobj(9)
    return b"".join([*(press.compress(piece) for _ in range(times)), press.flush()])


def text_bomb(megabytes: int) -> bytes:
    """A PDF whose one page draws that much text."""
    piece = b"BT /F 12 Tf 72 700 Td (Hello page) Tj ET\n"
    return pdf_with(squeezed(piece * (1_000_000 // len(piece)), megabytes))


def laughs(levels: int = 12) -> bytes:
    """A feed whose title is ten times ten times ... as long as it looks."""
    entities = [b'<!ENTITY a0 "hahahahaha">']
    entities += [b'<!ENTITY a%d "%s">' % (level, b"&a%d;" % (level - 1) * 10) for level in range(1, levels)]
    return _laughing(b"".join(entities), b"&a%d;" % (levels - 1))


def quadratic(entity_bytes: int, times: int) -> bytes:
    """A feed that repeats one long entity, too little at a time for the XML parser's own alarm."""
    return _laughing(b'<!ENTITY a "' + b"h" * entity_bytes + b'">', b"&a;" * times)


def _laughing(entities: bytes, title: bytes) -> bytes:
    return (
        b'<?xml version="1.0"?><!DOCTYPE rss [' + entities + b"]><rss version='2.0'><channel><title>" + title
    ) + b"</title></channel></rss>"


def _catalog(more: str) -> bytes:
    return b"<</Type/Catalog/Pages 2 0 R%s>>" % more.encode()


def _pages(numbers: Sequence[int]) -> bytes:
    return b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(numbers), b" ".join(b"%d 0 R" % number for number in numbers))


def _file(objects: Sequence[bytes], facts: str) -> bytes:
    every = [*objects, *([f"<<{facts}>>".encode("latin-1")] if facts else [])]
    out = bytearray(b"%PDF-1.7\n")
    places: list[int] = []
    for number, content in enumerate(every, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(every) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    info = b"/Info %d 0 R" % len(every) if facts else b""
    out += b"trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF" % (len(every) + 1, info, table)
    return bytes(out)
