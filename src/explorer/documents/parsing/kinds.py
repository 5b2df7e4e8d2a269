"""The kind of a body, detected by its first bytes and its label, and the decoding of its text."""

import codecs
import re

META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
XML_CHARSET = re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE)
HEAD_BYTES = 4096
WIDER = {
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "us-ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
}
"""The codec that browsers use for each label: pages often name a character set but use a larger one."""

SEVEN_BIT = ("iso-2022", "utf-16", "utf-32", "hz", "utf-7")
"""Encodings whose bytes can also be valid UTF-8, so that only the label decides."""


def text_of(body: bytes, content_type: str = "") -> str:
    """Return the text of a body: as UTF-8 if valid, else in the header's or page's encoding, else Windows-1252."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if body.startswith(mark):
            return body.decode(name, "replace")
    label = _label(body, content_type)
    if not label.startswith(SEVEN_BIT) and is_utf8(body):
        return body.decode("utf-8", "replace")
    try:
        return body.decode(label or "cp1252", "replace")
    except ValueError:  # some codecs, like idna, refuse what they cannot replace
        return body.decode("cp1252", "replace")


def is_utf8(body: bytes) -> bool:
    """Return whether a body is valid UTF-8; an incomplete character at the end is ignored."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return False
    return True


def _label(body: bytes, content_type: str) -> str:
    """Return the codec that the header or the first bytes of the body name; empty when neither names a known one."""
    head = body[:HEAD_BYTES]
    named = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", content_type, re.IGNORECASE)
    inside = (XML_CHARSET.match(head), META_CHARSET.search(head))
    names = [named[1] if named else "", *(match[1].decode("ascii", "replace") for match in inside if match)]
    for name in names:
        known = WIDER.get(name.lower(), name.lower())
        if known and _is_codec(known):
            return known
    return ""


def _is_codec(name: str) -> bool:
    try:
        b"x".decode(name, "replace")
    except (LookupError, ValueError):
        return False
    return True


HTML = "html"
PDF = "pdf"
TEXT = "text"
JSON = "json"
FEED = "feed"
DOCX = "docx"
PPTX = "pptx"
XLSX = "xlsx"
EPUB = "epub"
PACKED = frozenset({DOCX, PPTX, XLSX, EPUB})
"""Kinds that are ZIP archives: half a one cannot be read, because its table of contents is at the end."""
KINDS = frozenset({HTML, PDF, TEXT, JSON, FEED, *PACKED})
"""The kinds of documents that a body can be found to be."""
ENTRIES = "entries"
"""A feed whose entries are wanted as values, in JSON."""
COMMENTS = "comments"
"""A list of pieces of HTML in JSON, wanted as a list of plain texts: the comments of a thread."""
POSTS = "posts"
"""The same, wanted as markdown: questions and answers with headings, lists and tables."""
VALUES = frozenset({ENTRIES, COMMENTS, POSTS})
"""Kinds of requests for values: their text is JSON for the engine, not for a model."""
ARCHIVE = "archive"
"""A packed run, whose entries are wanted one by one."""
PDF_AGAIN = "pdf again"
"""A PDF in which the first library found no text."""

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"})
JSON_TYPE = re.compile(r"(application|text)/(.+\+)?json")
TEXT_TYPES = re.compile(
    r"text/.+|application/((.+\+)?(json|xml|yaml)|x-yaml|toml|x-ndjson|jsonl|markdown|javascript|rtf)"
)
UNKNOWN_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream"})

# Atomic groups: a head full of little comments must not be tried in every order.
PROLOGUE = (
    rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]{0,200}>\s*+)?"
    rb"(?>(?:(?><!--.*?-->)|(?><\?.*?\?>)|<!DOCTYPE\s+(?:rss|feed|rdf)\b[^>\[]*+>)\s*+)*+"
)
LOOKS_LIKE_HTML = re.compile(PROLOGUE + rb"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
LOOKS_LIKE_FEED = re.compile(
    PROLOGUE + rb"(<!DOCTYPE\s+(rss|feed|rdf)\b|<(rss|feed|rdf:RDF)\b)", re.IGNORECASE | re.DOTALL
)
LOOKS_LIKE_JSON_FEED = re.compile(rb"\s*\{[^{}\[\]]{0,500}?\"version\"\s*:\s*\"https?://jsonfeed\.org/")


def kind_of(body: bytes, content_type: str = "") -> str:
    """Return one of `KINDS`, or the content type of a body without text to read.

    The first bytes are more reliable than the label: servers send PDF as HTML, feeds as XML, and pages without a label.
    """
    label = content_type.partition(";")[0].strip().lower()
    head = body[:HEAD_BYTES]
    if head.startswith(b"%PDF-") or label == "application/pdf":
        return PDF
    is_wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or "utf-16" in content_type.lower()
    if head.startswith(ZIP):
        return _kind_of_zip(body) or label or "binary"
    if b"\x00" in head and not is_wide:
        return label or "binary"
    if label in HTML_TYPES or LOOKS_LIKE_HTML.match(head):
        return HTML
    return _kind_of_text(label, head)


ZIP = b"PK\x03\x04"
CONTENT_TYPES = b"[Content_Types].xml"
"""The name of a file in each Word, PowerPoint and Excel file."""
MAIN_PARTS = ((b"word/document.xml", DOCX), (b"ppt/presentation.xml", PPTX), (b"xl/workbook.", XLSX))
EPUB_HEAD = b"mimetypeapplication/epub+zip"


def _kind_of_zip(body: bytes) -> str:
    """Return the kind by the names in the archive, which nobody unpacks here; empty for any other archive."""
    if EPUB_HEAD in body[:HEAD_BYTES]:
        return EPUB
    return next((kind for name, kind in MAIN_PARTS if name in body), "") if CONTENT_TYPES in body else ""


def _kind_of_text(label: str, head: bytes) -> str:
    if label in FEED_TYPES or LOOKS_LIKE_FEED.match(head) or LOOKS_LIKE_JSON_FEED.match(head):
        return FEED
    if JSON_TYPE.fullmatch(label):
        return JSON
    if TEXT_TYPES.fullmatch(label):
        return TEXT
    if label in UNKNOWN_TYPES and is_utf8(head):
        return TEXT
    return label or "binary"
