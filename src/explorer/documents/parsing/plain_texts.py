"""Texts that need no parser, and JSON, laid out so that it can be read."""

import json
import re
from urllib.parse import unquote, urlsplit

from explorer.documents.parsing.characters import text_of
from explorer.documents.parsing.document import Document
from explorer.documents.parsing.languages import language_of

TITLE_CHARS = 200
TITLE_KEYS = ("title", "name", "full_name")
MAX_LAID_OUT = 2_000_000
"""Characters of JSON; more is left as it came."""


def read_text(body: bytes, *, url: str = "", content_type: str = "") -> Document:
    """The text as it is, under its first heading or its file's name."""
    text = text_of(body, content_type).strip()
    heading = re.match(r"#\s+(.+)", text)
    return Document(title=heading[1].strip() if heading else _name(url), text=text, language=language_of("", text))


def read_json(body: bytes, *, url: str = "", content_type: str = "") -> Document:
    """JSON, one value a line; what is none, or too long for that, as it is."""
    text = text_of(body, content_type).strip()
    title = _name(url)
    if len(text) <= MAX_LAID_OUT:
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            return Document(title=title, text=text)
        text = json.dumps(value, ensure_ascii=False, indent=1)
        title = _json_title(value) or title
    return Document(title=title, text=text)


def _json_title(value: object) -> str:
    if isinstance(value, dict):
        for key in TITLE_KEYS:
            if isinstance(named := value.get(key), str) and named.strip():  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - any JSON
                return " ".join(named.split())[:TITLE_CHARS]
    return ""


def _name(url: str) -> str:
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])
