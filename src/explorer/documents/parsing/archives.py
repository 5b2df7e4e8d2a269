"""Archives (tar.gz), read by a confined process: the engine gets names, sizes and contents, and judges them."""

import struct
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter

from explorer.documents.parsing.kinds import ARCHIVE
from explorer.documents.parsing.parser import ParserLimits, worker_command, worker_environment
from explorer.documents.parsing.unpack_worker import (
    DAMAGED,
    HEADER,
    MAX_HEADER_BYTES,
    PIECE_BYTES,
    TOO_MUCH,
    ArchiveHeader,
)

LIMITS = ParserLimits(cpu_s=300, wall_s=900.0)
HEADERS = TypeAdapter(ArchiveHeader)
NOT_ENDED = "it took too much memory or time to unpack, or the process that unpacks did not start"


class ArchiveError(Exception):
    """An archive that cannot be unpacked; the message says why."""


class ArchiveEntry:
    """An entry of an archive, and its content, which can be read once."""

    def __init__(self, header: ArchiveHeader, frames: IO[bytes]) -> None:
        self.name = header.name
        self.is_plain = header.is_plain
        self.size = header.size
        self._left = header.size
        self._frames = frames

    def read(self, size: int) -> bytes:
        """Return the next bytes of the content; empty at its end.

        Raises:
            ArchiveError: The process ended.
        """
        wanted = min(size, self._left)
        piece = self._frames.read(wanted) if wanted else b""
        if wanted and not piece:
            raise ArchiveError(NOT_ENDED)
        self._left -= len(piece)
        return piece


@contextmanager
def opened_archive(
    source: Path, max_bytes: int, python: str = sys.executable, limits: ParserLimits = LIMITS
) -> Generator[Iterator[ArchiveEntry]]:
    """Open an archive, and return its entries in their order; what is not read of one is passed over.

    `max_bytes` is what it may unpack to, headers included; `python` is the interpreter of the process, which `limits`
    hold.

    Raises:
        OSError: The file cannot be opened, or no process can be started.
        ArchiveError: It is damaged, or unpacks to too much.
    """
    with source.open("rb") as file:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [*worker_command(python, ARCHIVE, limits), str(max_bytes)],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=worker_environment(),
            start_new_session=True,
        )
    assert process.stdout
    # Its own limit is of CPU time, and a process that waits takes none.
    deadline = threading.Timer(limits.wall_s, process.kill)
    deadline.daemon = True
    deadline.start()
    try:
        yield _entries(process.stdout)
    finally:
        deadline.cancel()
        process.kill()
        process.stdout.close()
        process.wait()


def _entries(frames: IO[bytes]) -> Iterator[ArchiveEntry]:
    while not (header := _header(frames)).is_end:
        if header.confinement is None:
            entry = ArchiveEntry(header, frames)
            yield entry
            while entry.read(PIECE_BYTES):
                pass
    if header.problem:
        raise ArchiveError(TOO_MUCH if header.problem == TOO_MUCH else DAMAGED)


def _header(frames: IO[bytes]) -> ArchiveHeader:
    try:
        (size,) = HEADER.unpack(frames.read(HEADER.size))
        if size > MAX_HEADER_BYTES:
            raise ArchiveError(DAMAGED)
        header = HEADERS.validate_json(frames.read(size))
    except (struct.error, ValueError) as error:
        raise ArchiveError(NOT_ENDED) from error
    if header.size < 0:
        raise ArchiveError(DAMAGED)
    return header
