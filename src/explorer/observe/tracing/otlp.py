"""Spans as the bytes that OTLP collectors take: `ExportTraceServiceRequest` in Protocol Buffers.

https://github.com/open-telemetry/opentelemetry-proto, trace.proto and common.proto. Written by hand, because of the
whole format four kinds of field are needed; in binary, because not every collector takes the JSON form.
"""

import struct
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from explorer.observe.tracing.spans import Span, Value

CONTENT_TYPE = "application/x-protobuf"
STATUS_ERROR = 2
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MORE = 0x80
"""The bit that says that another byte of the same number follows."""
_VARINT, _FIXED64, _BYTES = 0, 1, 2
"""How a field's value is written, in the low bits of its tag."""


def export_request(spans: Iterable[Span], service: Mapping[str, Value], version: str) -> bytes:
    """The body of `POST /v1/traces`.

    Args:
        spans: What to send.
        service: What sends it, by attributes of a resource: `service.name`, ...
        version: Of explorer.
    """
    scope = _text(1, "explorer") + _text(2, version)
    of_scope = _bytes(1, scope) + b"".join(_bytes(2, _span(span)) for span in spans)
    return _bytes(1, _bytes(1, _attributes(1, service)) + _bytes(2, of_scope))


def _span(span: Span) -> bytes:
    parts = [
        _bytes(1, span.trace_id),
        _bytes(2, span.span_id),
        _bytes(4, span.parent_id) if span.parent_id else b"",
        _text(5, span.name),
        _number(6, span.kind),
        _moment(7, span.start),
        _moment(8, span.end),
        _attributes(9, span.attributes),
    ]
    if span.error:
        parts += [
            _attributes(9, {"error.type": span.error}),
            _bytes(15, _text(2, span.error) + _number(3, STATUS_ERROR)),
        ]
    return b"".join(parts)


def _attributes(field: int, attributes: Mapping[str, Value]) -> bytes:
    pairs = (_text(1, name) + _bytes(2, _value(value)) for name, value in attributes.items())
    return b"".join(_bytes(field, pair) for pair in pairs)


def _value(value: Value) -> bytes:
    match value:
        case str():
            return _text(1, value)
        # Before the numbers: a bool is an int too.
        case bool():
            return _number(2, int(value))
        case int():
            return _number(3, value)
        case float():
            return _tag(4, _FIXED64) + struct.pack("<d", value)
        case _:
            return _bytes(5, b"".join(_bytes(1, _text(1, one)) for one in value))


def _tag(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as 64-bit two's complement."""
    number &= (1 << 64) - 1
    found = bytearray()
    while number >= MORE:
        found.append(number % MORE | MORE)
        number >>= 7
    found.append(number)
    return bytes(found)


def _number(field: int, number: int) -> bytes:
    return _tag(field, _VARINT) + _varint(number)


def _bytes(field: int, content: bytes) -> bytes:
    return _tag(field, _BYTES) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode("utf-8", "replace"))


def _moment(field: int, moment: datetime) -> bytes:
    """Nanoseconds since 1970; by whole microseconds, because a float cannot tell them apart."""
    since = moment - EPOCH
    nanoseconds = ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000
    return _tag(field, _FIXED64) + struct.pack("<Q", nanoseconds)
