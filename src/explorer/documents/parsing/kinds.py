"""What a body is, by its first bytes and by what it is called."""

import codecs
import re

from explorer.documents.parsing.characters import is_utf8

HTML = "html"
PDF = "pdf"
TEXT = "text"
JSON = "json"
FEED = "feed"
KINDS = frozenset({HTML, PDF, TEXT, JSON, FEED})

HEAD_BYTES = 4096
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
    """One of `KINDS`, or else the content type of something that has no text to read.

    The first bytes decide against the label: servers send PDF as HTML, feeds as XML, and pages without any label.
    """
    label = content_type.partition(";")[0].strip().lower()
    head = body[:HEAD_BYTES]
    if head.startswith(b"%PDF-") or label == "application/pdf":
        return PDF
    is_wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or "utf-16" in content_type.lower()
    if b"\x00" in head and not is_wide:
        return label or "binary"
    if label in HTML_TYPES or LOOKS_LIKE_HTML.match(head):
        return HTML
    return _kind_of_text(label, head)


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
