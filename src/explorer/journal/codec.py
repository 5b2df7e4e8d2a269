"""The journal's lines: records to bytes and back, and which part of a file can be trusted.

A line is `{"v":1,"seq":17,"at":"...","agent":"...","type":"...", ..., "sure":16,"prev":"<crc32>","crc":"<crc32>"}`:
`prev` is the `crc` of the line before, `crc` covers the line up to itself. So neither a flipped bit nor a
missing or foreign line is ever taken for a record, the last line included.

Before the crc there may be a `mark` of the line and of the mark before, made with the user's key. Where all lines have
theirs, the run is the user's own, wherever its folder is now. Any other run was carried here: brought by an archive, a
repository or a shared folder, or written before there were marks.
"""

import json
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import cast

from pydantic import ConfigDict, TypeAdapter
from pydantic_core import to_json

from explorer.schema.errors import JournalDamagedError, JournalVersionError
from explorer.schema.events import JOURNAL_VERSION, AnyEvent, JournalRecord
from explorer.schema.messages import ONCE, JsonObject
from explorer.schema.reasons import LIMIT_WORDS, EndCause, NoteReason
from explorer.text.sanitize import single_line
from explorer.workspace.access import journal_path
from explorer.workspace.user_key import NO_KEY, UserKey

GENESIS = "00000000"
"""The `prev` of the first line."""
CRC_TAIL = re.compile(rb',"crc":"([0-9a-f]{8})"\}')
CRC_TAIL_BYTES = len(',"crc":"00000000"}')
HEAD = re.compile(rb'\{"v":%d,"seq":(\d{1,18}),"at":"([^"\\]+)",(?=")' % JOURNAL_VERSION)
TAIL = re.compile(rb',"sure":\d{1,18},"prev":"([0-9a-f]{8})"(?:,"mark":"[0-9a-f]{32}")?,"crc":"[0-9a-f]{8}"\}$')
MAX_TAIL_BYTES = 128
LINE_END = re.compile(rb'\n|(?<="\}).(?=\{"v":)', re.DOTALL)
"""The border of two lines in a damaged file: the newline, or whatever byte replaced it."""
ENVELOPE = ("v", "seq", "at", "sure", "prev", "mark", "crc")
SURE = re.compile(rb',"sure":(\d+),"prev":"[0-9a-f]{8}"(,"mark":"[0-9a-f]{32}")?,"crc":"[0-9a-f]{8}"\}$')
NEVER_WRITTEN = re.compile(rb"\0{16}")
"""The content of a page that never reached the disk because of a power cut; no line has a NUL."""

OLD_CAUSES = {words: cause for cause, words in LIMIT_WORDS.items()} | {
    "answered": EndCause.ANSWERED,
    "finished": EndCause.FINISHED,
    "found nothing": EndCause.FOUND_NOTHING,
}
"""The code of each end, by the beginning of its reason in journals of explorer 0.1."""
OLD_JOB_NOTE = re.compile(r"(bash_\d+)_ended")
"""The reason of a note about a background job, in journals of explorer 0.1."""
WITHOUT_CODES = frozenset({"agent_finished", "run_finished", "note"})
"""Types of the events to which explorer 0.1 wrote no codes."""

Upcaster = Callable[[JsonObject], JsonObject]
Sign = Callable[[bytes], str]
"""Return the mark of a line, from what comes before the mark."""

UPCASTERS: dict[int, Upcaster] = {}
"""A pure function from a record's fields in each version to those in the next."""

EVENTS: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent, config=ConfigDict(defer_build=True))
"""Reads any event; built at its first use, which a new run does not need to begin."""


@dataclass(frozen=True)
class Scan:
    """The valid records of a journal file, and what follows them."""

    records: tuple[JournalRecord, ...]
    last_crc: str
    good_bytes: int
    """The length of the valid beginning in bytes; the rest is a torn tail."""
    torn: bytes
    """The bytes after the valid beginning: a torn tail, empty in a clean journal."""
    damage: JournalDamagedError | None = None
    """Why the rest is more than a torn tail; None when it is not."""


def encode(record: JournalRecord, prev: str, sure: int | None = None, sign: Sign | None = None) -> tuple[bytes, str]:
    """Return a record's line, with its newline, and its crc.

    Args:
        record: The record to write.
        prev: The crc of the line before.
        sure: The last record known to be on disk; the one before, if not given.
        sign: Makes the line's mark; None: it has none.
    """
    known = record.seq - 1 if sure is None else sure
    head = b'{"v":%d,"seq":%d,"at":"%s",%s,"sure":%d,"prev":"%s"' % (
        record.v,
        record.seq,
        record.at.isoformat().encode(),
        _fields_of(record.event),
        known,
        prev.encode(),
    )
    if sign is not None:
        head += b',"mark":"%s"' % sign(head).encode()
    crc = f"{zlib.crc32(head):08x}"
    return head + b',"crc":"' + crc.encode() + b'"}\n', crc


def _fields_of(event: AnyEvent) -> bytes:
    """Return an event's fields as they are in its line, without the braces."""
    try:
        return to_json(event, context=ONCE)[1:-1]
    except ValueError:
        # Half of a surrogate pair, which no UTF-8 has: each is written as a question mark.
        text = json.dumps(event.model_dump(mode="json", context=ONCE), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")[1:-1]


def encode_all(records: Iterable[JournalRecord]) -> bytes:
    """Return a whole journal with these records."""
    lines: list[bytes] = []
    crc = GENESIS
    for record in records:
        line, crc = encode(record, crc)
        lines.append(line)
    return b"".join(lines)


def scan(content: bytes) -> Scan:
    """Read a journal's bytes.

    Raises:
        JournalDamagedError: A valid record comes after a damaged one, or the journal is of a newer version.
    """
    found = examine(content)
    if found.damage is not None:
        raise found.damage
    return found


def examine(content: bytes, last_crc: str = GENESIS, count: int = 0) -> Scan:
    """Read as far as the bytes can be trusted, and return what is wrong after that instead of raising.

    Args:
        content: A journal, or the part of it after a valid beginning.
        last_crc: The crc of the beginning's last record.
        count: The number of records in the beginning.
    """
    records: list[JournalRecord] = []
    position, damage = 0, None
    while position < len(content):
        end = content.find(b"\n", position)
        line = content[position : end if end >= 0 else len(content)]
        seq = count + len(records) + 1
        crc = _crc_of(line) if end >= 0 else None
        try:
            record = (_decode_quickly(line, last_crc, seq) or _decode(line, last_crc, seq)) if crc else None
            if record is None:
                _refuse_if_valid_records_follow(content[position:], seq)
        except JournalDamagedError as error:
            record, damage = None, error
        if record is None:
            break
        records.append(record)
        last_crc = crc or GENESIS
        position = end + 1
    return Scan(tuple(records), last_crc, position, content[position:], damage)


def _crc_of(line: bytes) -> str | None:
    """Return the line's crc; None when it is missing or wrong."""
    found = CRC_TAIL.fullmatch(line, max(0, len(line) - CRC_TAIL_BYTES))
    if found is None or b"%08x" % zlib.crc32(memoryview(line)[: found.start()]) != found[1]:
        return None
    return found[1].decode()


def _decode_quickly(line: bytes, prev: str, seq: int) -> JournalRecord | None:
    """Return the record of a sound line, read in one pass over its bytes; None where `_decode` has to look closer.

    A line that this engine wrote has its envelope around the event's fields, which are parsed and validated together.
    """
    head, tail = HEAD.match(line), TAIL.search(line, max(0, len(line) - MAX_TAIL_BYTES))
    if head is None or tail is None or int(head[1]) != seq or tail[1] != prev.encode() or head.end() > tail.start():
        return None
    try:
        event = EVENTS.validate_json(b"{" + line[head.end() : tail.start()] + b"}")
        at = datetime.fromisoformat(head[2].decode())
        return (
            JournalRecord(v=JOURNAL_VERSION, seq=seq, at=at, event=event) if event.type not in WITHOUT_CODES else None
        )
    except ValueError:
        return None


def _decode(line: bytes, prev: str, seq: int) -> JournalRecord | None:
    """Return the record of a line with its crc; None when the line is not the one that was written after `prev`."""
    fields = _fields(line, seq)
    if fields["prev"] != prev or fields["seq"] != seq:
        return None
    version: int = fields["v"]
    if version > JOURNAL_VERSION:
        raise JournalVersionError(
            f"record {seq} has version {version}; this explorer reads up to {JOURNAL_VERSION}",
            hint="update explorer: pip install -U explorer",
        )
    while version < JOURNAL_VERSION:
        if version not in UPCASTERS:
            raise _not_understood(seq, ValueError(f"there was never a version {version}"))
        fields = UPCASTERS[version](fields)
        version += 1
    body = _with_codes({key: value for key, value in fields.items() if key not in ENVELOPE})
    try:
        return JournalRecord(
            v=version, seq=seq, at=datetime.fromisoformat(fields["at"]), event=EVENTS.validate_python(body)
        )
    except ValueError as error:
        raise _not_understood(seq, error) from error


def _with_codes(fields: JsonObject) -> JsonObject:
    """Add the codes that explorer 0.1 did not write: its texts for them never changed."""
    if fields.get("type") in {"agent_finished", "run_finished"} and "cause" not in fields:
        return fields | {"cause": OLD_CAUSES.get(str(fields.get("reason")).partition(";")[0], EndCause.OTHER)}
    if fields.get("type") == "note" and (job := OLD_JOB_NOTE.fullmatch(str(fields.get("reason")))):
        return fields | {"reason": NoteReason.JOB_ENDED, "data": {"job": job[1]}}
    return fields


def _fields(line: bytes, seq: int) -> JsonObject:
    """Return a line's fields, with the envelope checked: a checksum does not prove who wrote the line."""
    try:
        fields: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _not_understood(seq, error) from error
    kinds = (("v", int), ("seq", int), ("prev", str), ("at", str))
    if not isinstance(fields, dict) or not all(isinstance(fields.get(name), kind) for name, kind in kinds):  # pyright: ignore[reportUnknownMemberType]
        raise _not_understood(seq, ValueError("it has no sound envelope"))
    return cast("JsonObject", fields)


def _not_understood(seq: int, error: Exception) -> JournalDamagedError:
    words = single_line(str(error), 300)
    return JournalDamagedError(f"record {seq} is intact but not understood: {words}", hint="explorer doctor RUN")


def _refuse_if_valid_records_follow(tail: bytes, seq: int) -> None:
    """Raise when intact records follow, or one is in the wrong place: only a torn tail may be cut off.

    The exception are records that were written together and never acknowledged before a power cut: pages that never
    reached the disk, before later ones that did. Those later lines were sealed before the hole was acknowledged.
    """
    lines = LINE_END.split(tail)
    # A line alone that lacks nothing but its newline is torn.
    intact = [line for line in (lines if len(lines) > 1 else ()) if _crc_of(line) is not None]
    if not intact:
        return
    if NEVER_WRITTEN.search(tail) and all(_sure_of(line) < seq for line in intact):
        return
    raise JournalDamagedError(
        f"the journal is damaged at record {seq} (line {seq}), and intact records follow it",
        hint="explorer does not guess what was lost; what can be saved, and how: explorer doctor RUN",
    )


def _sure_of(line: bytes) -> int:
    """Return the number of the last record that was on disk when a line was sealed."""
    found = SURE.search(line)
    return int(found[1]) if found is not None else 0


PURPOSE = "journal"
MARK = re.compile(rb',"mark":"([0-9a-f]{32})","crc":"[0-9a-f]{8}"\}$')
"""The end of a marked line; the mark is of all that comes before it."""
MAX_END = 80
"""More characters than the end of a line has."""


@dataclass(frozen=True)
class MarkChain:
    """The place after a marked line, or before the first one."""

    key: UserKey
    last: str = ""
    """The mark of the line before; empty before the first one."""

    def sign(self, head: bytes) -> str:
        """Return the mark of the next line, made of what comes before its mark."""
        return self.key.mark(PURPOSE, self.last.encode() + head)

    def after(self, line: bytes) -> "MarkChain":
        """Return the place after a line that was just signed."""
        found = MARK.search(line.rstrip(b"\n"), max(0, len(line) - MAX_END))
        assert found is not None
        return replace(self, last=found[1].decode())

    def checked_after(self, line: bytes) -> "MarkChain | None":
        """Return the place after a line; None when its mark is missing or was made by somebody else."""
        found = MARK.search(line, max(0, len(line) - MAX_END))
        if found is None or not self.key.made(found[1].decode(), PURPOSE, self.last.encode() + line[: found.start()]):
            return None
        return replace(self, last=found[1].decode())


def chain_of(content: bytes, key: UserKey) -> MarkChain | None:
    """Return the place after the whole lines of a journal; None when not all of them have the key's marks."""
    chain = MarkChain(key) if key.is_there else None
    for line in content.split(b"\n")[:-1]:
        if chain is None:
            return None
        chain = chain.checked_after(line)
    return chain


def encode_marked(records: Iterable[JournalRecord], key: UserKey) -> bytes:
    """Return a whole journal with these records, each marked as the user's own."""
    lines: list[bytes] = []
    crc, chain = GENESIS, MarkChain(key)
    for record in records:
        line, crc = encode(record, crc, sign=chain.sign)
        chain = chain.after(line)
        lines.append(line)
    return b"".join(lines)


def is_own(folder: Path, key: UserKey = NO_KEY) -> bool:
    """Return whether this user's explorer wrote a run's whole journal."""
    try:
        content = journal_path(folder).read_bytes()
    except OSError:
        return False
    return chain_of(content[: examine(content).good_bytes], key) is not None
