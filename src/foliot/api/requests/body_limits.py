"""Limits request bodies before they are decoded: their bytes, their depth, their number of values, and the length of
their numbers.

A body of few bytes can be expensive in other ways: 11 million empty lists fit into a batch, and one number of 100,000
digits takes as long to parse as the rest of a batch. Loops over single bytes run in C, slice by slice, so that other
threads get their turn.
"""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request

from foliot.api.requests.headers import header_of
from foliot.errors import Malformed, TooLarge

BODY = "body"
# Deeper than any real payload, and far below the depth at which a JSON encoder runs out of stack.
DEPTH_MAX = 100
VALUES_MAX = 500_000
# The time to parse an integer grows with the square of its digits: a body full of longer ones would take seconds.
DIGITS_MAX = 500
SLICE_BYTES = 1 << 18
NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
LONG_NUMBER = b"0" * (DIGITS_MAX + 1)


async def read(request: Request, max_bytes: int) -> bytes:
    """Counts the bytes as they arrive, because Content-Length may lie. A body whose Content-Length is too large is not
    read at all."""
    announced = header_of(request, "content-length") or ""
    if announced.isdecimal() and (len(announced) > 18 or int(announced) > max_bytes):
        raise _too_large(max_bytes)
    received: bytes | bytearray = b""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Malformed("the connection ended before the body did", field=BODY)
        if not received:
            received = message.get("body", b"")
        else:
            # Most bodies come whole and need no copy. The others grow in place.
            received = bytearray(received) if isinstance(received, bytes) else received
            received += message.get("body", b"")
        if len(received) > max_bytes:
            raise _too_large(max_bytes)
        if not message.get("more_body", False):
            return bytes(received)


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"the body is larger than {max_bytes} bytes", field=BODY)


def refuse_shape(body: bytes, field: str) -> None:
    """Raises `Malformed` for a body that is nested too deeply, and `TooLarge` for one with too many values."""
    opened = body.count(b"[") + body.count(b"{")
    # With its comma, a value takes at least two bytes.
    is_few = len(body) <= 2 * VALUES_MAX or opened + body.count(b",") <= VALUES_MAX
    if opened <= DEPTH_MAX and is_few:
        return
    values = depth = 0
    for outside in _outside_strings(body):
        brackets = outside.translate(None, NOT_BRACKETS)
        values += outside.count(b",") + brackets.count(b"[") + brackets.count(b"{")
        if values > VALUES_MAX:
            raise TooLarge(f"the body holds more than {VALUES_MAX:,} values", field=field)
        for bracket in brackets:
            depth += 1 if bracket in b"[{" else -1
            if depth > DEPTH_MAX:
                raise Malformed(f"the body is nested more than {DEPTH_MAX} deep", field=field)


def has_long_number(body: bytes) -> bool:
    return len(body) > DIGITS_MAX and _has_outside_strings(body, (LONG_NUMBER,))


def has_extreme_number(body: bytes) -> bool:
    """Whether a number has many digits or an exponent, and so may be too large to be stored."""
    return _has_outside_strings(body, (LONG_NUMBER, b"0e", b"0E"))


def _has_outside_strings(body: bytes, signs: tuple[bytes, ...]) -> bool:
    """Whether the body contains one of the signs outside of strings, with every digit read as 0. Strings are removed
    only if the body with them contains a sign."""

    def are_in(text: bytes) -> bool:
        digits = text.translate(DIGITS_ALIKE)
        return any(sign in digits for sign in signs)

    return are_in(body) and are_in(b"".join(_outside_strings(body)))


def _outside_strings(body: bytes) -> Iterator[bytes]:
    """The body without its strings, in slices. After the first syntax error, strings and other text may be confused."""
    is_inside = False
    held_back = b""
    for start in range(0, len(body), SLICE_BYTES):
        piece = held_back + body[start : start + SLICE_BYTES]
        # A backslash at the end of a slice belongs to the first character of the next one, unless it is itself escaped.
        held_back = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        if held_back:
            piece = piece[:-1]
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(parts[is_inside::2])
        is_inside ^= len(parts) % 2 == 0
