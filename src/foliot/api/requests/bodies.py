"""Decodes request bodies strictly, and names the field that is wrong. `body_limits.py` limits them.

Normally a body costs one typed decode. Only a body that fails it, or that contains an escape PostgreSQL can't store, is
parsed a second time to find the field to name. Large bodies are decoded in a thread, one at a time, so that a slow one
does not delay other requests.
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

from foliot.api.requests.body_limits import (
    BODY,
    DIGITS_MAX,
    has_extreme_number,
    has_long_number,
    read,
    refuse_shape,
)
from foliot.api.requests.whole_numbers import with_whole_numbers
from foliot.errors import Invalid, Malformed
from foliot.validation_errors import to_invalid

T = TypeVar("T")
# Even the worst body of this size is decoded within a few milliseconds. Starting a thread would delay other requests
# more.
SMALL_BYTES = 65_536
NUL_ESCAPE = b"\\u0000"
UNSTORABLE_ESCAPES = (NUL_ESCAPE, b"\\ud", b"\\uD")
HARMLESS = frozenset({int, float, bool, type(None)})
"""Types of parsed values that can be stored, whatever they are."""
is_json = msgspec.json.Decoder(msgspec.Raw).decode
IS_FLOAT = "got `float`"
one_at_a_time = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large body")


async def read_json(request: Request, decoder: msgspec.json.Decoder[T], *, max_bytes: int) -> T:
    return await decoded(await read(request, max_bytes), decoder)


async def decoded(
    body: bytes, decoder: msgspec.json.Decoder[T], *, look_first: Callable[[bytes], None] | None = None
) -> T:
    """Calls `decode` without blocking the event loop. `look_first` may refuse a large body before it is decoded."""
    if len(body) <= SMALL_BYTES:
        return decode(body, decoder)
    return await in_body_thread(body, partial(decode, body, decoder, look_first=look_first))


async def in_body_thread(body: bytes, work: Callable[[], T]) -> T:
    """Runs `work` on a body, in the thread for large bodies if the body is large."""
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
        # Report other errors of the body before decoding it again.
        refuse_unstorable(body)
        changed = with_whole_numbers(body, decoder.type)
        if changed is None:
            raise
        return decoder.decode(changed)


def refuse_unstorable(body: bytes) -> None:
    """Raises an error that names the field if JSON or PostgreSQL does not allow a value."""
    if not _may_be_unstorable(body):
        return
    try:
        text = body.decode()
        tree = json.loads(
            text,
            parse_constant=_Constant,
            # Python's own integer parser is ten times as fast, and accepts every shorter number.
            parse_int=_integer if has_long_number(body) else None,
            parse_float=_number,
        )
    except UnicodeDecodeError as error:
        raise Malformed(f"the body is not UTF-8 at byte {error.start}", field=BODY) from None
    except json.JSONDecodeError as error:
        raise Malformed(
            f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}", field=BODY
        ) from None
    except RecursionError:
        raise Malformed("the body is nested too deeply", field=BODY) from None
    _refuse_value([], tree)


def _may_be_unstorable(body: bytes) -> bool:
    """Tests the bytes, because building and searching a tree of a million values takes a second. It finds every value
    that can't be stored, and some harmless texts that look like one."""
    try:
        body.decode()
        is_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    if any(escape in body for escape in UNSTORABLE_ESCAPES):
        return True
    return has_extreme_number(body)


class _Constant(str):
    """NaN, Infinity or -Infinity. JSON does not allow them, but Python's parser does."""

    __slots__ = ()


class _TooLarge(str):
    """A number that is valid JSON but too large to be stored."""

    __slots__ = ()


def _integer(text: str) -> int | _TooLarge:
    # The check does not need the value.
    return _TooLarge(text) if len(text) > DIGITS_MAX else 0


def _number(text: str) -> float | _TooLarge:
    return _TooLarge(text) if len(text) > DIGITS_MAX or math.isinf(float(text)) else 0.0


def _refuse_value(path: list[str | int], value: object) -> None:
    """Checks a value and everything in it. `path` becomes text only for an error, because most bodies have none."""
    if isinstance(value, str):
        _refuse_text(path, value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            path.append(key)
            _refuse_text(path, key)
            if type(inner) not in HARMLESS:
                _refuse_value(path, inner)
            path.pop()
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if type(inner) not in HARMLESS:
                path.append(index)
                _refuse_value(path, inner)
                path.pop()


def _refuse_text(path: list[str | int], value: str) -> None:
    if type(value) is str and value.isascii() and "\0" not in value:
        return
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
