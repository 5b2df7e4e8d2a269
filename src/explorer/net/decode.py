"""What a fetched body is, and its characters."""

import codecs
import re

from explorer.net.fetch import Fetched

META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
HEAD_BYTES = 4096
LOOKS_LIKE_HTML = re.compile(
    rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
TEXT_TYPES = re.compile(
    r"text/.+|application/((.+\+)?(json|xml|yaml)|x-yaml|toml|x-ndjson|jsonl|markdown|javascript|rtf)"
)
UNKNOWN_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream"})
WIDER = {
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "us-ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
}
"""As browsers read these labels: pages use the wider set under the narrower one's name."""

SEVEN_BIT = ("iso-2022", "utf-16", "utf-32", "hz", "utf-7")
"""Encodings whose bytes can pass for UTF-8, so that only the label tells."""

HTML = "html"
TEXT = "text"
PDF = "PDF"


def kind_of(fetched: Fetched) -> str:
    """`html`, `text`, `PDF`, or the content type of something that has no text to read.

    The first bytes decide against the label: servers send PDF as HTML, and pages without any label.
    """
    label = fetched.content_type.partition(";")[0].strip().lower()
    head = fetched.body[:HEAD_BYTES]
    if head.startswith(b"%PDF-") or label == "application/pdf":
        return PDF
    is_wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or "utf-16" in fetched.content_type.lower()
    if b"\x00" in head and not is_wide:
        return label or "binary"
    if label in HTML_TYPES or LOOKS_LIKE_HTML.match(head):
        return HTML
    if TEXT_TYPES.fullmatch(label):
        return TEXT
    if label in UNKNOWN_TYPES and _is_utf8(head):
        return TEXT
    return label or "binary"


def text_of(fetched: Fetched) -> str:
    """The body's characters: what is valid UTF-8 is UTF-8, else the header, the page or the web's old default says."""
    body = fetched.body
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if body.startswith(mark):
            return body.decode(name, "replace")
    label = _label(fetched)
    if not label.startswith(SEVEN_BIT) and _is_utf8(body):
        return body.decode("utf-8", "replace")
    try:
        return body.decode(label or "cp1252", "replace")
    except ValueError:  # some codecs, like idna, refuse what they cannot replace
        return body.decode("cp1252", "replace")


def _is_utf8(body: bytes) -> bool:
    """Whether it is UTF-8, a character cut at the end forgiven."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return False
    return True


def _label(fetched: Fetched) -> str:
    """A codec's name from the header or the page's head; empty when neither names a known one."""
    named = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", fetched.content_type, re.IGNORECASE)
    meta = META_CHARSET.search(fetched.body[:HEAD_BYTES])
    for name in (named[1] if named else "", meta[1].decode("ascii", "replace") if meta else ""):
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
