"""What a parser gives, and how the parsing process sends it: JSON lines with a length before, and a body's bytes.

A question is its head's length, its body's length (both big-endian, four bytes), the head and the body; an answer is
a length and JSON. The process says `READY` once, as its first answer.
"""

import json
import struct
from dataclasses import asdict, dataclass

TRUNCATED = "truncated"
"""Its end is missing."""
PAYWALL = "paywall"
CHALLENGE = "challenge"
"""A check for robots replaces the text."""
SCRIPT_SHELL = "script_shell"
"""Scripts were to load the text."""
NO_TEXT_LAYER = "no_text_layer"
"""Pages of a PDF are pictures: their words cannot be read."""


@dataclass(frozen=True)
class Document:
    """The text of a page or a file, and what is known about it."""

    title: str
    """May be empty."""
    text: str
    """Markdown, or the text as it is."""
    author: str = ""
    published: str = ""
    """An ISO date or time, when the document names one."""
    language: str = ""
    """A code like `en` or `zh`, when the document names one."""
    flags: tuple[str, ...] = ()
    pages: int = 0
    """Of a PDF, all of them; 0 where there are none."""
    site: str = ""
    """The name of the site, when the document names one."""


QUESTION = struct.Struct(">II")
ANSWER = struct.Struct(">I")
MAX_ANSWER_BYTES = 64_000_000


@dataclass(frozen=True)
class ParseRequest:
    """What is to be parsed."""

    kind: str
    url: str = ""
    content_type: str = ""


@dataclass(frozen=True)
class ParseReply:
    """What came of it: a document, or words about what is wrong with it."""

    document: Document | None = None
    problem: str = ""
    peak_bytes: int = 0
    """Memory the process had at most, so far."""


READY = ParseReply()


def question_bytes(question: ParseRequest, body: bytes) -> bytes:
    """A question as it is sent."""
    head = json.dumps(asdict(question)).encode()
    return QUESTION.pack(len(head), len(body)) + head + body


def question_of(head: bytes) -> ParseRequest:
    """A question out of its head."""
    return ParseRequest(**json.loads(head))


def answer_bytes(answer: ParseReply) -> bytes:
    """An answer as it is sent; halves of characters out of a broken page are replaced."""
    body = json.dumps(asdict(answer), ensure_ascii=False).encode("utf-8", "replace")
    return ANSWER.pack(len(body)) + body
