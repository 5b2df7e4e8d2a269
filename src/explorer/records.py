"""The journal's lines: how a record becomes bytes and back, and what of a file can be trusted.

A line is `{"v":1,"seq":17,"at":"...","agent":"...","type":"...", ..., "prev":"<crc32>","crc":"<crc32>"}`:
`prev` is the `crc` of the line before, `crc` covers the line up to itself. So neither a flipped bit nor a
missing or foreign line is ever taken for a record, the last line included.
"""

import json
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from explorer.errors import JournalDamagedError
from explorer.events import JOURNAL_VERSION, AnyEvent, Record
from explorer.messages import JsonObject

GENESIS = "00000000"
"""`prev` of the first line."""
CRC_TAIL = re.compile(rb',"crc":"([0-9a-f]{8})"\}$')
LINE_END = re.compile(rb'\n|(?<="\}).(?=\{"v":)', re.DOTALL)
"""Between two lines of a damaged file: the newline, or whatever byte took its place."""
ENVELOPE = ("v", "seq", "at", "prev", "crc")

Upcaster = Callable[[JsonObject], JsonObject]

UPCASTERS: dict[int, Upcaster] = {}
"""By version: a pure function from a record's fields in that version to those in the next."""

_EVENTS: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)


@dataclass(frozen=True)
class Scan:
    """What reading a journal file found."""

    records: tuple[Record, ...]
    last_crc: str
    good_bytes: int
    """Length of the valid head; what follows is a torn tail."""
    torn: bytes
    """The torn tail, empty in a clean journal."""


def encode(record: Record, prev: str) -> tuple[bytes, str]:
    """A record's line, with its newline, and its crc."""
    fields = {"v": record.v, "seq": record.seq, "at": record.at.isoformat()}
    fields |= record.event.model_dump(mode="json")
    fields["prev"] = prev
    head = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")[:-1]
    crc = f"{zlib.crc32(head):08x}"
    return head + b',"crc":"' + crc.encode() + b'"}\n', crc


def encode_all(records: Iterable[Record]) -> bytes:
    """A whole journal of given records."""
    lines: list[bytes] = []
    crc = GENESIS
    for record in records:
        line, crc = encode(record, crc)
        lines.append(line)
    return b"".join(lines)


def scan(content: bytes) -> Scan:
    """Read a journal's bytes.

    Raises:
        JournalDamagedError: A valid record stands after a damaged one, or the journal is of a newer version.
    """
    records: list[Record] = []
    last_crc, position = GENESIS, 0
    while position < len(content):
        end = content.find(b"\n", position)
        line = content[position : end if end >= 0 else len(content)]
        record = _decode(line, last_crc, len(records) + 1) if end >= 0 else None
        if record is None:
            _refuse_if_valid_records_follow(content[position:], len(records) + 1)
            return Scan(tuple(records), last_crc, position, content[position:])
        records.append(record)
        last_crc = _crc_of(line) or GENESIS
        position = end + 1
    return Scan(tuple(records), last_crc, position, b"")


def _crc_of(line: bytes) -> str | None:
    """The line's crc when it is the right one."""
    found = CRC_TAIL.search(line)
    if found is None or f"{zlib.crc32(line[: found.start()]):08x}".encode() != found[1]:
        return None
    return found[1].decode()


def _decode(line: bytes, prev: str, seq: int) -> Record | None:
    """The record of a line, or None when the line is not what was written after `prev`."""
    if _crc_of(line) is None:
        return None
    fields: JsonObject = json.loads(line)
    if fields["prev"] != prev or fields["seq"] != seq:
        return None
    version: int = fields["v"]
    if version > JOURNAL_VERSION:
        raise JournalDamagedError(
            f"record {seq} has version {version}; this explorer reads up to {JOURNAL_VERSION}",
            hint="update explorer: pip install -U explorer",
        )
    while version < JOURNAL_VERSION:
        fields = UPCASTERS[version](fields)
        version += 1
    body = {key: value for key, value in fields.items() if key not in ENVELOPE}
    try:
        event = _EVENTS.validate_python(body)
    except ValidationError as error:
        raise JournalDamagedError(f"record {seq} is intact but not understood: {error}") from error
    return Record(v=version, seq=seq, at=datetime.fromisoformat(fields["at"]), event=event)


def _refuse_if_valid_records_follow(tail: bytes, seq: int) -> None:
    """A torn tail may be cut off; a hole before intact records, or an intact one in the wrong place, may not."""
    lines = LINE_END.split(tail)
    # A line alone that lacks nothing but its newline is torn.
    for line in lines if len(lines) > 1 else ():
        if _crc_of(line) is not None:
            raise JournalDamagedError(
                f"the journal is damaged at record {seq} (line {seq}), and intact records follow it",
                hint="restore the journal from a copy; explorer does not guess what was lost",
            )
