"""Parsed documents, and the messages between the engine and the process that parses.

A request consists of the sizes of its header and its body (four bytes each, big-endian), the header in JSON, and the
body. A reply consists of its size (four bytes, big-endian) and JSON. The first reply says what confines the process.
"""

import json
import struct
from dataclasses import asdict, dataclass

TRUNCATED = "truncated"
"""The flag of a document whose end is missing."""
PAYWALL = "paywall"
CHALLENGE = "challenge"
"""The flag of a page that has a bot check instead of its text."""
SCRIPT_SHELL = "script_shell"
"""The flag of a page whose text is missing because scripts load it."""
NO_TEXT_LAYER = "no_text_layer"
"""The flag of a PDF whose pages are mostly pictures, so that their words cannot be read."""
FLAGS = frozenset({TRUNCATED, PAYWALL, CHALLENGE, SCRIPT_SHELL, NO_TEXT_LAYER})

LOCKED = "the PDF is locked by a password"
DAMAGED = "the PDF is damaged, or none at all"
ENTITIES = "the feed declares entities of its own, as bombs do, and is not read"
NOT_READ = "the file is damaged, or not what its ending says"
UNPACKS_TO_TOO_MUCH = "it unpacks to more than is read, as bombs do"
OWN_ENTITIES = "its XML declares entities of its own, as bombs do, and is not read"
PROBLEMS = frozenset({LOCKED, DAMAGED, ENTITIES, NOT_READ, UNPACKS_TO_TOO_MUCH, OWN_ENTITIES})
"""Everything that is wrong with a document in the words of a parser: what else a process says of it is not believed."""


@dataclass(frozen=True)
class Document:
    """The text of a page or a file, and its metadata."""

    title: str
    """The title; empty when it is not known."""
    text: str
    """Markdown, or plain text."""
    author: str = ""
    published: str = ""
    """The ISO date or time of publication; empty when the document has none."""
    language: str = ""
    """A code such as `en` or `zh`; empty when the language is not known."""
    flags: tuple[str, ...] = ()
    pages: int = 0
    """The number of all pages of a PDF, slides, sheets or chapters, with those that were not read; 0: it has none."""
    site: str = ""
    """The name of the site; empty when the document has none."""


@dataclass(frozen=True)
class FeedEntry:
    """An entry of a feed as values; what it does not have is empty."""

    id: str
    title: str
    link: str
    author: str
    time: int | None
    """The Unix seconds of its publication or its last change."""
    content: str
    """The whole text or the summary, in HTML."""
    words: str = ""
    """The plain text of the part that a user of Reddit wrote; empty in feeds of other services."""


MAX_PIECE_CHARS = 200_000
"""Limit of one comment or post; its rest is left out."""
QUESTION = struct.Struct(">II")
ANSWER = struct.Struct(">I")
MAX_ANSWER_BYTES = 64_000_000


@dataclass(frozen=True)
class ParseRequest:
    """A request to parse a document."""

    kind: str
    url: str = ""
    content_type: str = ""


@dataclass(frozen=True)
class ConfinementReport:
    """What holds the process that parses, as it found it at its start."""

    has_seccomp: bool
    landlock: int
    """The version of Landlock's interface; 0 where the system has none."""
    why: str
    """Why there is no seccomp; empty where there is."""
    open: tuple[str, ...] = ()
    """The attempts that succeeded although they must not."""

    @property
    def holds(self) -> bool:
        """Whether the process has no files and no network, and everything it tried was refused."""
        return self.has_seccomp and not self.open


@dataclass(frozen=True)
class ParseReply:
    """The result of a request: a document, or a message about the problem with it; first of all, that it is ready."""

    document: Document | None = None
    problem: str = ""
    confinement: ConfinementReport | None = None
    """What holds the process; in its first reply only."""


def question_bytes(question: ParseRequest, body: bytes) -> bytes:
    """Return a request in the format of the message."""
    head = json.dumps(asdict(question)).encode()
    return QUESTION.pack(len(head), len(body)) + head + body


def question_of(head: bytes) -> ParseRequest:
    """Return the request in the header of a message."""
    return ParseRequest(**json.loads(head))


def answer_bytes(answer: ParseReply) -> bytes:
    """Return a reply in the format of the message; invalid characters of a damaged page are replaced."""
    body = json.dumps(asdict(answer), ensure_ascii=False).encode("utf-8", "replace")
    return ANSWER.pack(len(body)) + body
