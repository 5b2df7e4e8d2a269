"""The process that reads archives (tar.gz), and what it sends: the engine decides what is written.

The process gets the open file as its stdin. It sends frames: the size of a header (four bytes, big-endian), the header
in JSON, and the content of its entry. The first header says that it is ready, the last one how it ended.
"""

import gzip
import io
import json
import logging
import os
import struct
import tarfile
import zlib
from dataclasses import asdict, dataclass
from typing import IO

from explorer.documents.parsing.confine import confine
from explorer.documents.parsing.document import ConfinementReport
from explorer.documents.parsing.worker import limit_memory, limit_time, open_pipes

HEADER = struct.Struct(">I")
MAX_HEADER_BYTES = 100_000
NAME_CHARS = 5_000
PIECE_BYTES = 256 * 1024
DAMAGED = "it is damaged, or no tar.gz file"
TOO_MUCH = "it unpacks to too much"


@dataclass(frozen=True)
class ArchiveHeader:
    """An entry of an archive, or the end of it."""

    name: str = ""
    """The path as the archive has it."""
    is_plain: bool = False
    """Whether it is a regular file, and no link, device or sparse file."""
    size: int = 0
    is_end: bool = False
    problem: str = ""
    """Why it ends before its end; one of `DAMAGED` and `TOO_MUCH`."""
    confinement: ConfinementReport | None = None
    """What holds the process; in its first header only."""


def main(_kind: str, memory_bytes: int, cpu_s: int, max_bytes: int) -> None:
    """Send all entries of the archive at stdin, confined; `max_bytes` is what it may unpack to, headers included."""
    logging.disable(logging.CRITICAL)
    limit_memory(memory_bytes)
    limit_time(cpu_s)
    archive, frames = open_pipes()
    _send_header(frames, ArchiveHeader(confinement=confine()))
    send_entries(archive, frames, max_bytes)
    os._exit(0)


def send_entries(archive: IO[bytes], frames: IO[bytes], max_bytes: int) -> None:
    """Write all entries of an archive as frames."""
    problem = ""
    try:
        with (
            gzip.GzipFile(fileobj=archive) as unzipped,
            tarfile.open(fileobj=_Counted(unzipped, max_bytes), mode="r|", errorlevel=2) as entries,  # type: ignore[arg-type] # it reads, and is asked for nothing else
        ):
            for entry in entries:
                if not entry.isdir():
                    _send_entry(entries, entry, frames)
    except _TooMuchError:
        problem = TOO_MUCH
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError):
        problem = DAMAGED
    _send_header(frames, ArchiveHeader(is_end=True, problem=problem))


def _send_entry(entries: tarfile.TarFile, entry: tarfile.TarInfo, frames: IO[bytes]) -> None:
    is_plain = entry.type in {tarfile.REGTYPE, tarfile.AREGTYPE} and not entry.issparse()
    content = entries.extractfile(entry) if is_plain else None
    # Names that are no text get a backslash, which no path of a run has.
    name = entry.name.encode("utf-8", "backslashreplace").decode()[:NAME_CHARS]
    _send_header(frames, ArchiveHeader(name, is_plain, entry.size if content else 0))
    left = entry.size if content else 0
    try:
        while content and left:
            piece = content.read(min(PIECE_BYTES, left))
            if not piece:
                raise EOFError
            frames.write(piece)
            left -= len(piece)
    finally:
        # As long as its header says, so that the last header is read as one: it says that the archive is damaged.
        for start in range(0, left, PIECE_BYTES):
            frames.write(bytes(min(PIECE_BYTES, left - start)))


def _send_header(frames: IO[bytes], header: ArchiveHeader) -> None:
    """Write a header."""
    body = json.dumps(asdict(header)).encode()
    frames.write(HEADER.pack(len(body)) + body)
    frames.flush()


class _TooMuchError(Exception):
    """An archive unpacks to more than it may."""


class _Counted(io.RawIOBase):
    """Counts what a stream unpacks to, so that a small file cannot become a huge one, headers included."""

    def __init__(self, inner: gzip.GzipFile, limit: int) -> None:
        self._inner = inner
        self._left = limit

    def read(self, size: int = -1) -> bytes:
        content = self._inner.read(size)
        self._left -= len(content)
        if self._left < 0:
            raise _TooMuchError
        return content
