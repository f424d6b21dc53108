"""Encodes values that user code made. JSON has no infinity and no NaN: msgspec would silently write null, so these
numbers are refused."""

from __future__ import annotations

import json
import math
from pathlib import PurePath
from typing import Any

import msgspec

HINT = "JSON has neither infinity nor NaN: use None, or a text"


def encode_finite(value: Any) -> bytes:
    """Raises what msgspec raises, and `ValueError` for a number that JSON does not have, with its place."""
    encoded = encode(value)
    # Only where there is a null can there have been such a number: most values are looked at no further.
    if b"null" in encoded:
        refuse_not_finite(value)
    return encoded


def encode_storable(value: Any) -> bytes:
    """As `encode_finite`, also for text with a lone surrogate."""
    try:
        return encode_finite(value)
    except UnicodeEncodeError:
        # Escaped, it is valid JSON text.
        plain = to_plain(value)
        refuse_not_finite(plain)
        return json.dumps(plain, allow_nan=False).encode()


def to_plain(value: Any) -> Any:
    """The value in the types of JSON. Raises what msgspec raises."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=of_other_type)


def of_other_type(value: Any) -> Any:
    """Paths, and the models and URLs of pydantic, which msgspec does not know."""
    if isinstance(value, PurePath) or type(value).__module__ == "pydantic.networks":
        return str(value)
    if hasattr(value, "model_dump") and hasattr(type(value), "__pydantic_serializer__"):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


# Bound once: a job may replace functions of modules in its worker's process.
encode = msgspec.json.Encoder(enc_hook=of_other_type).encode


def refuse_not_finite(value: Any) -> None:
    """For a value that has been encoded before: it is finite in size, whatever is in it."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        path, one = stack.pop()
        if isinstance(one, float):
            if not math.isfinite(one):
                raise ValueError(
                    f"{path}: {one!r} is no number of JSON. {HINT}" if path else f"{one!r} is no number of JSON. {HINT}"
                )
        elif isinstance(one, dict):
            stack.extend((f"{path}.{key}"[-200:].removeprefix("."), inner) for key, inner in one.items())
        elif isinstance(one, list | tuple | set | frozenset):
            stack.extend((f"{path}[{index}]"[-200:], inner) for index, inner in enumerate(one))
        elif one is not None and not isinstance(one, str | int | bytes | bytearray | memoryview | msgspec.Raw):
            plain = to_plain(one)
            if isinstance(plain, dict | list | float):
                stack.append((path, plain))
