"""Request bodies: read under a limit, decoded strictly, and when they are bad, said where.

The fast path is one typed decode. Only a body that fails it, or that holds an escape PostgreSQL can't store, is looked
at again, slowly, to find the field to name. Large bodies are decoded in a thread, one at a time: a request that takes a
while must not keep others waiting.
"""

from __future__ import annotations

import json
import math
from asyncio import get_running_loop
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import msgspec
from starlette.requests import Request

from foliot.api.requests.body_shape import DIGITS_MAX, has_long_number, refuse_shape
from foliot.api.requests.whole_numbers import with_whole_numbers
from foliot.errors import Invalid, Malformed, TooLarge
from foliot.model.validation_errors import to_invalid

T = TypeVar("T")
BODY = "body"
# The worst that can be in a body of this size is read within some milliseconds, less than a thread would cost all
# others.
SMALL_BYTES = 65_536
NUL_ESCAPE = b"\\u0000"
IS_FLOAT = "got `float`"
one_at_a_time = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large body")


async def read_json(request: Request, decoder: msgspec.json.Decoder[T], *, max_bytes: int) -> T:
    return await decoded(await read(request, max_bytes), decoder)


async def read(request: Request, max_bytes: int) -> bytes:
    """The body, counted as it arrives: a Content-Length may lie. One that says itself that it is too large is not read
    at all."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and (len(announced) > 18 or int(announced) > max_bytes):
        raise _too_large(max_bytes)
    received = bytearray()
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Malformed("the connection ended before the body did", field=BODY)
        received += message.get("body", b"")
        if len(received) > max_bytes:
            raise _too_large(max_bytes)
        if not message.get("more_body", False):
            return bytes(received)


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"the body is larger than {max_bytes} bytes", field=BODY)


async def decoded(
    body: bytes, decoder: msgspec.json.Decoder[T], *, look_first: Callable[[bytes], None] | None = None
) -> T:
    """`decode`, without keeping the event loop busy. `look_first` may refuse a large body before anything is made of
    it."""
    if len(body) <= SMALL_BYTES:
        return decode(body, decoder)
    return await in_body_thread(body, partial(decode, body, decoder, look_first=look_first))


async def in_body_thread(body: bytes, work: Callable[[], T]) -> T:
    """What is to be worked out from a body; in the thread for it, if the body is large."""
    if len(body) <= SMALL_BYTES:
        return work()
    return await get_running_loop().run_in_executor(one_at_a_time, work)


def decode(body: bytes, decoder: msgspec.json.Decoder[T], *, look_first: Callable[[bytes], None] | None = None) -> T:
    refuse_shape(body, BODY)
    if has_long_number(body):
        refuse_unstorable(body)
    if look_first is not None:
        look_first(body)
    try:
        decoded = _typed(body, decoder)
    except msgspec.ValidationError as error:
        refuse_unstorable(body)
        raise to_invalid(error, whole=BODY) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refuse_unstorable(body)
        raise Malformed(f"the body is not JSON: {error}", field=BODY) from None
    if NUL_ESCAPE in body:
        refuse_unstorable(body)
    return decoded


def _typed(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        if IS_FLOAT not in str(error):
            raise
        # What else is wrong with it is said before anything is made of it once more.
        refuse_unstorable(body)
        changed = with_whole_numbers(body, decoder.type)
        if changed is None:
            raise
        return decoder.decode(changed)


def refuse_unstorable(body: bytes) -> None:
    """Raises, with the field's name, for what JSON or PostgreSQL does not allow; returns when it finds nothing of the
    kind."""
    try:
        text = body.decode()
        tree = json.loads(text, parse_constant=_Constant, parse_int=_integer, parse_float=_number)
    except UnicodeDecodeError as error:
        raise Malformed(f"the body is not UTF-8 at byte {error.start}", field=BODY) from None
    except json.JSONDecodeError as error:
        raise Malformed(
            f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}", field=BODY
        ) from None
    except RecursionError:
        raise Malformed("the body is nested too deeply", field=BODY) from None
    _refuse_value([], tree)


class _Constant(str):
    """NaN, Infinity or -Infinity, which JSON does not have but Python's parser takes."""

    __slots__ = ()


class _TooLarge(str):
    """A number that is JSON, but that no computer counts with."""

    __slots__ = ()


def _integer(text: str) -> int | _TooLarge:
    # Which number it is, nobody asks here.
    return _TooLarge(text) if len(text) > DIGITS_MAX else 0


def _number(text: str) -> float | _TooLarge:
    return _TooLarge(text) if len(text) > DIGITS_MAX or math.isinf(float(text)) else 0.0


def _refuse_value(path: list[str | int], value: object) -> None:
    """The path is put into words only when something is wrong there: most bodies have many values and nothing wrong."""
    if isinstance(value, str):
        _refuse_text(path, value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            path.append(key)
            _refuse_text(path, key)
            _refuse_value(path, inner)
            path.pop()
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            path.append(index)
            _refuse_value(path, inner)
            path.pop()


def _refuse_text(path: list[str | int], value: str) -> None:
    if isinstance(value, _Constant):
        raise _not_storable(path, f"{value} is not a number in JSON")
    if isinstance(value, _TooLarge):
        raise _not_storable(path, "a number of that size can't be stored")
    if "\0" in value:
        raise _not_storable(path, "the character NUL (\\u0000) can't be stored")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _not_storable(path, "a lone surrogate is not a character") from None


def _not_storable(path: list[str | int], why: str) -> Invalid:
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
    field = words.replace("\0", "\\u0000").encode("utf-8", "backslashreplace").decode() or BODY
    return Invalid(f"{field}: {why}", field=field)
