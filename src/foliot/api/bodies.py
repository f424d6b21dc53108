"""Request bodies: read under a limit, decoded strictly, and when they are bad, said where.

The fast path is one typed decode. Only a body that fails it, or that holds an escape PostgreSQL can't store, is looked at again, slowly, to
find the field to name.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from foliot.errors import Invalid, Malformed, TooLarge
from foliot.model.refused import refused

T = TypeVar("T")
BODY = "body"
# Deeper than any payload that somebody wrote, and far from the depth at which the stack of a writer of JSON ends.
DEPTH_MAX = 100
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
NUL_ESCAPE = b"\\u0000"


async def read_json(request: Request, decoder: msgspec.json.Decoder[T], *, max_bytes: int) -> T:
    return decode(await read(request, max_bytes), decoder)


async def read(request: Request, max_bytes: int) -> bytes:
    """The body, counted as it arrives: a Content-Length may lie."""
    received = bytearray()
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        received += message.get("body", b"")
        if len(received) > max_bytes:
            raise TooLarge(f"the body is larger than {max_bytes} bytes", field=BODY)
        if not message.get("more_body", False):
            return bytes(received)


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    refuse_depth(body)
    try:
        decoded = decoder.decode(body)
    except msgspec.ValidationError as error:
        refuse_unstorable(body)
        raise refused(error, whole=BODY) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refuse_unstorable(body)
        raise Malformed(f"the body is not JSON: {error}", field=BODY) from None
    if NUL_ESCAPE in body:
        refuse_unstorable(body)
    return decoded


def refuse_depth(body: bytes) -> None:
    """Raises for what is nested too deeply, before anything is made of it."""
    if body.count(b"[") + body.count(b"{") <= DEPTH_MAX:
        return
    depth = 0
    for bracket in STRING.sub(b"", body).translate(None, NOT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH_MAX:
            raise Malformed(f"the body is nested more than {DEPTH_MAX} deep", field=BODY)


def refuse_unstorable(body: bytes) -> None:
    """Raises, with the field's name, for what JSON or PostgreSQL does not allow; returns when it finds nothing of the kind."""
    try:
        text = body.decode()
        tree = json.loads(text, parse_constant=_Constant, parse_int=_integer, parse_float=_number)
    except UnicodeDecodeError as error:
        raise Malformed(f"the body is not UTF-8 at byte {error.start}", field=BODY) from None
    except json.JSONDecodeError as error:
        raise Malformed(f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}", field=BODY) from None
    except RecursionError:
        raise Malformed("the body is nested too deeply", field=BODY) from None
    # A stack of our own: the depth is the sender's choice.
    stack: list[tuple[str, Any]] = [("", tree)]
    while stack:
        path, value = stack.pop()
        _refuse_value(path, value)
        if isinstance(value, dict):
            for key, inner in value.items():
                _refuse_value(f"{path}.{key}" if path else key, key)
                stack.append((f"{path}.{key}" if path else key, inner))
        elif isinstance(value, list):
            stack.extend((f"{path}[{index}]", inner) for index, inner in enumerate(value))


class _Constant(str):
    """NaN, Infinity or -Infinity, which JSON does not have but Python's parser takes."""

    __slots__ = ()


class _TooLarge(str):
    """A number that is JSON, but that no computer counts with."""

    __slots__ = ()


def _integer(text: str) -> int | _TooLarge:
    try:
        return int(text)
    except ValueError:
        return _TooLarge(text)


def _number(text: str) -> float | _TooLarge:
    number = float(text)
    return _TooLarge(text) if math.isinf(number) else number


def _refuse_value(path: str, value: object) -> None:
    field = _printable(path) or BODY
    if isinstance(value, _Constant):
        raise Invalid(f"{field}: {value} is not a number in JSON", field=field)
    if isinstance(value, _TooLarge):
        raise Invalid(f"{field}: a number of that size can't be stored", field=field)
    if isinstance(value, str):
        if "\0" in value:
            raise Invalid(f"{field}: the character NUL (\\u0000) can't be stored", field=field)
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise Invalid(f"{field}: a lone surrogate is not a character", field=field)


def _printable(path: str) -> str:
    return path.replace("\0", "\\u0000").encode("utf-8", "backslashreplace").decode()
