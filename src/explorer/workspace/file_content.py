"""What stands in a file: text or not, its lines, its hash; read in pieces, so that no size is too big to begin with."""

import codecs
import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from explorer.schema.events import WrittenFile
from explorer.workspace.paths import clean

HEAD_BYTES = 8_192
"""Of a file, to tell text from what is none."""
PIECE_BYTES = 1024 * 1024
MAX_SCANNED_BYTES = 32 * 1024 * 1024
"""Of one file, gone through for its lines; of a bigger one only what lies before is read by line."""
MAX_LINE_KEPT_CHARS = 100_000
"""Of one line; more is shown to nobody."""
TITLE_CHARS = 120
IMAGES = {b"\x89PNG\r\n\x1a\n": "a PNG image", b"\xff\xd8\xff": "a JPEG image", b"GIF8": "a GIF image"}
KINDS = IMAGES | {
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive or an office document",
    b"\x1f\x8b": "a gzip archive",
    b"SQLite format 3\0": "an SQLite database",
}
PNG_HEADER = struct.Struct(">8x4x4s2L")


@dataclass(frozen=True)
class LineRange:
    """Some lines of a text file."""

    lines: list[str]
    total: int
    """Lines counted in the file."""
    is_whole: bool
    """Whether the file was counted to its end."""


def kind_of(head: bytes) -> str:
    """What a file that begins so is, in words; empty for text."""
    for mark, words in KINDS.items():
        if head.startswith(mark):
            return words + _dimensions(head)
    undecodable = len(head) - len(head.decode("utf-8", "ignore").encode())
    return "a binary file" if b"\0" in head or undecodable > max(4, len(head) // 10) else ""


def _dimensions(head: bytes) -> str:
    if head.startswith(b"\x89PNG") and len(head) >= PNG_HEADER.size:
        mark, width, height = PNG_HEADER.unpack_from(head)
        return f" of {width} x {height} pixels" if mark == b"IHDR" else ""
    return ""


def no_text(path: str, kind: str, size: int) -> str:
    """Words for who wants to read as text what is none."""
    way = f"; to show it in a report, write ![what it shows]({path})" if kind.startswith(tuple(IMAGES.values())) else ""
    return f"{path} is {kind} ({size} bytes); it cannot be read as text{way}"


def head_of(descriptor: int) -> bytes:
    """A file's first bytes."""
    return os.pread(descriptor, HEAD_BYTES, 0)


def _pieces(descriptor: int) -> Iterator[bytes]:
    place = 0
    while place < MAX_SCANNED_BYTES and (piece := os.pread(descriptor, PIECE_BYTES, place)):
        place += len(piece)
        yield piece


def lines_in(descriptor: int) -> int:
    """Lines of a text file as an editor counts them; 0 for what is no text."""
    if kind_of(head_of(descriptor)):
        return 0
    count, last = 0, b""
    for piece in _pieces(descriptor):
        count += piece.count(b"\n")
        last = piece[-1:]
    return count + (last not in {b"", b"\n"})


def passage(descriptor: int, first: int, last: int) -> LineRange:
    """The lines from `first` to `last`, counted from 1, of an open text file."""
    wanted = _Lines(first, last)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in _pieces(descriptor):
        wanted.take(decoder.decode(piece))
    is_whole = os.fstat(descriptor).st_size <= MAX_SCANNED_BYTES
    if is_whole:
        wanted.end(decoder.decode(b"", final=True))
    return LineRange(wanted.kept, wanted.count, is_whole)


@dataclass
class _Lines:
    """Lines of a text that comes in pieces; only those asked for are kept."""

    first: int
    last: int
    count: int = 0
    kept: list[str] = field(default_factory=list[str])
    _open: str = ""
    """A line whose end has not come yet."""

    def take(self, text: str) -> None:
        """The next piece."""
        lines = (self._open + text).splitlines(keepends=True)
        self._open = lines.pop() if lines and not _is_ended(lines[-1]) else ""
        if not self._open.endswith("\r"):
            self._open = self._open[:MAX_LINE_KEPT_CHARS]
        self._add(lines)

    def end(self, text: str) -> None:
        """The last piece: what is open is a line too."""
        self._add((self._open + text).splitlines(keepends=True))

    def _add(self, lines: list[str]) -> None:
        begin, end = max(0, self.first - 1 - self.count), max(0, self.last - self.count)
        self.kept += [line.splitlines()[0][:MAX_LINE_KEPT_CHARS] for line in lines[begin:end]]
        self.count += len(lines)


def _is_ended(line: str) -> bool:
    """Whether a line has its end; after a carriage return a line feed may still come."""
    return not line.endswith("\r") and line.splitlines()[0] != line


def sha256(content: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(content).hexdigest()


def count_lines(content: bytes) -> int:
    """Lines as an editor counts them."""
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def describe(path: str, text: str) -> WrittenFile:
    """What the journal says about a written file."""
    content = text.encode("utf-8", "replace")
    first = next((line.strip("# \t*-") for line in text.splitlines() if line.strip("# \t*-")), "")
    return WrittenFile(
        path=clean(path),
        title=first[:TITLE_CHARS],
        lines=count_lines(content),
        bytes=len(content),
        sha256=sha256(content),
    )
