"""Reads what a collector gets: the Protocol Buffers of `ExportTraceServiceRequest`, for tests."""

import struct
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Fields = dict[int, list[bytes | int]]
Value = str | bool | int | float | list[str]


@dataclass(frozen=True)
class GotSpan:
    """One span as it came."""

    trace_id: str
    id: str
    parent: str
    name: str
    kind: int
    start: datetime
    end: datetime
    attributes: dict[str, Value]
    status: int
    """0 unset, 2 error."""

    @property
    def seconds(self) -> float:
        """How long it was."""
        return (self.end - self.start).total_seconds()


def read_spans(body: bytes) -> list[GotSpan]:
    """All spans of a request."""
    scopes = [_message(scope) for one in _all(_message(body), 1) for scope in _all(_message(one), 2)]
    return [_span(_message(span)) for scope in scopes for span in _all(scope, 2)]


def read_service(body: bytes) -> dict[str, Value]:
    """The attributes of what sent a request."""
    resource = _message(_all(_message(_all(_message(body), 1)[0]), 1)[0])
    return _attributes(_all(resource, 1))


def _span(fields: Fields) -> GotSpan:
    status = _message(_all(fields, 15)[0]) if 15 in fields else {}
    start, end = (_moment(fields[number][0]) for number in (7, 8))
    return GotSpan(
        trace_id=_all(fields, 1)[0].hex(),
        id=_all(fields, 2)[0].hex(),
        parent=b"".join(_all(fields, 4)).hex(),
        name=_all(fields, 5)[0].decode(),
        kind=_number(fields[6][0]),
        start=start,
        end=end,
        attributes=_attributes(_all(fields, 9)),
        status=_number(status[3][0]) if 3 in status else 0,
    )


def _attributes(pairs: list[bytes]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for pair in map(_message, pairs):
        found[_all(pair, 1)[0].decode()] = _value(_message(_all(pair, 2)[0]))
    return found


def _value(fields: Fields) -> Value:
    ((number, (content,)),) = fields.items()
    match number:
        case 1:
            return _bytes(content).decode()
        case 2:
            return bool(content)
        case 3:
            return _number(content)
        case 4:
            return struct.unpack("<d", struct.pack("<Q", content))[0]
        case _:
            return [_all(_message(one), 1)[0].decode() for one in _all(_message(_bytes(content)), 1)]


def _message(content: bytes) -> Fields:
    fields: Fields = defaultdict(list)
    place = 0
    while place < len(content):
        tag, place = _varint(content, place)
        kind = tag & 7
        if kind == 0:
            number, place = _varint(content, place)
            fields[tag >> 3].append(number)
        elif kind == 1:
            fields[tag >> 3].append(struct.unpack_from("<Q", content, place)[0])
            place += 8
        else:
            assert kind == 2, f"a field of kind {kind}"
            length, place = _varint(content, place)
            fields[tag >> 3].append(content[place : place + length])
            place += length
    assert place == len(content)
    return dict(fields)


def _varint(content: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = content[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place


def _all(fields: Fields, number: int) -> list[bytes]:
    return [_bytes(one) for one in fields.get(number, [])]


def _bytes(content: bytes | int) -> bytes:
    assert isinstance(content, bytes)
    return content


def _number(content: bytes | int) -> int:
    assert isinstance(content, int)
    return content


def _moment(content: bytes | int) -> datetime:
    return EPOCH + timedelta(microseconds=_number(content) / 1000)
