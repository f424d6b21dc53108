"""Encodes spans as OTLP, in the wire format of Protocol Buffers. Pure.

Thousands of runs end in a second, with three spans each. To build them as messages of a protobuf library takes several
times as long, and jobs would lack that time. So a span is put together from bytes, and attributes that repeat are
encoded once. The tests decode the result with OpenTelemetry's own messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from struct import Struct

Value = str | int | None
INTERNAL, CONSUMER = 1, 5
"""Kinds of spans."""
SAMPLED, HAS_REMOTE, IS_REMOTE = 0x001, 0x100, 0x200
"""Flags of spans."""
# Fields: a number and a wire type in one byte. Those before the bar belong to a span, an event, a link, a status.
TRACE_ID, SPAN_ID, PARENT_ID, NAME, KIND, START, END = b"\x0a\x10", b"\x12\x08", b"\x22\x08", b"\x2a", 0x30, 0x39, 0x41
ATTRIBUTE, EVENT, LINK, STATUS, FLAGS = b"\x4a", b"\x5a", b"\x6a", b"\x7a", b"\x85\x01"
EVENT_TIME, EVENT_NAME, EVENT_ATTRIBUTE = 0x09, b"\x12", b"\x1a"
LINK_ATTRIBUTE = b"\x22"
STATUS_MESSAGE, STATUS_ERROR = b"\x12", b"\x18\x02"
# Of an attribute.
KEY, VALUE, TEXT, NUMBER = b"\x0a", b"\x12", b"\x0a", b"\x18"
# Of a request, from the inside out: scope spans, resource spans, the request itself.
SCOPE, SCOPE_SPAN, SCOPE_NAME = b"\x0a", b"\x12", b"\x0a"
RESOURCE, RESOURCE_SCOPE, RESOURCE_ATTRIBUTE = b"\x0a", b"\x12", b"\x0a"
RESOURCE_SPANS = b"\x0a"

MASK = (1 << 64) - 1
CACHED = 4_096
"""Attributes: names of tasks and queues, states, ids of workers."""
CACHED_TEXT_MAX = 128
_ids = Struct(">2sQQ2sQ").pack
_parent = Struct(">2sQ").pack
_rest = Struct("<BBBQBQ2sI").pack
_time = Struct("<BQ").pack


def span(
    ids: tuple[int, int, int], name: str, times: tuple[int, int], *, kind: int, flags: int, details: bytes
) -> bytes:
    """`ids`: of the trace, the span and its parent, which is 0 for none. `times`: nanoseconds since 1970. `details`:
    attributes, events, links and a status, encoded."""
    trace_id, span_id, parent_id = ids
    began, ended = times
    parent = _parent(PARENT_ID, parent_id) if parent_id else b""
    fixed = _ids(TRACE_ID, trace_id >> 64, trace_id & MASK, SPAN_ID, span_id)
    # The clock of the database may have been set back.
    timed = _rest(KIND, kind, START, began, END, max(began, ended), FLAGS, flags)
    return b"".join((fixed, parent, timed, _cached_text(NAME, name), details))


def attributes(values: Mapping[str, Value], field: bytes = ATTRIBUTE) -> bytes:
    """Without those that are None."""
    return b"".join([attribute(key, value, field) for key, value in values.items() if value is not None])


def attribute(key: str, value: str | int, field: bytes = ATTRIBUTE) -> bytes:
    if isinstance(value, str) and len(value) > CACHED_TEXT_MAX:
        return _attribute(key, value, field)
    return _cached_attribute(key, value, field)


def passing_attribute(key: str, value: str, field: bytes = ATTRIBUTE) -> bytes:
    """An attribute whose value will not repeat."""
    return _attribute(key, value, field)


def event(name: str, at: int, values: Mapping[str, Value]) -> bytes:
    content = _time(EVENT_TIME, at) + _cached_text(EVENT_NAME, name) + attributes(values, EVENT_ATTRIBUTE)
    return delimited(EVENT, content)


def link(trace_id: int, span_id: int, values: Mapping[str, Value]) -> bytes:
    content = _ids(TRACE_ID, trace_id >> 64, trace_id & MASK, SPAN_ID, span_id) + attributes(values, LINK_ATTRIBUTE)
    return delimited(LINK, content)


def error(message: str) -> bytes:
    """The status of a span."""
    return delimited(STATUS, delimited(STATUS_MESSAGE, message.encode()) + STATUS_ERROR)


def request(spans: Iterable[bytes], resource: Mapping[str, Value]) -> bytes:
    """An export of these spans, by `foliot`."""
    scope = delimited(SCOPE, delimited(SCOPE_NAME, b"foliot"))
    content = b"".join([scope, *(delimited(SCOPE_SPAN, one) for one in spans)])
    about = delimited(RESOURCE, attributes(resource, RESOURCE_ATTRIBUTE))
    return delimited(RESOURCE_SPANS, about + delimited(RESOURCE_SCOPE, content))


def delimited(field: bytes, content: bytes) -> bytes:
    return field + varint(len(content)) + content


def varint(number: int) -> bytes:
    if number < 128:
        return bytes((number,))
    if number < 16_384:
        return bytes((number & 127 | 128, number >> 7))
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _attribute(key: str, value: str | int, field: bytes) -> bytes:
    # A negative number is written as its complement.
    content = NUMBER + varint(value & MASK) if isinstance(value, int) else delimited(TEXT, value.encode())
    return delimited(field, delimited(KEY, key.encode()) + delimited(VALUE, content))


_cached_attribute = lru_cache(CACHED)(_attribute)


@lru_cache(CACHED)
def _cached_text(field: bytes, text: str) -> bytes:
    return delimited(field, text.encode())
