"""The shape of a JSON body, from its bytes alone: how deep it is nested, how many values it holds, how long its numbers
are.

A body that is small in bytes can be large in every other way: 11 million empty lists fit into a batch, and a number of
100,000 digits takes as long to read as the rest of a batch together. So these limits are checked before anything is
made of a body. Everything that looks at each byte does so in C, slice by slice, so that other threads get their turn.
"""

from __future__ import annotations

from collections.abc import Iterator

from foliot.errors import Malformed, TooLarge

# Deeper than any payload that somebody wrote, and far from the depth at which the stack of a writer of JSON ends.
DEPTH_MAX = 100
VALUES_MAX = 1_000_000
# Reading and writing an integer takes the square of its digits: in a body full of longer ones, seconds.
DIGITS_MAX = 500
SLICE_BYTES = 1 << 18
NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
LONG_NUMBER = b"0" * (DIGITS_MAX + 1)


def refuse_shape(body: bytes, field: str) -> None:
    """Raises `Malformed` for what is nested too deeply, and `TooLarge` for too many values."""
    opened = body.count(b"[") + body.count(b"{")
    # A value takes two bytes at least, with its comma.
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
    if len(body) <= DIGITS_MAX or LONG_NUMBER not in body.translate(DIGITS_ALIKE):
        return False
    return LONG_NUMBER in b"".join(_outside_strings(body)).translate(DIGITS_ALIKE)


def _outside_strings(body: bytes) -> Iterator[bytes]:
    """The body without its strings, in slices. What follows the first error of syntax may be taken for the one or the
    other."""
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
