"""JSON of values that user code made. JSON has no infinity and no NaN; msgspec writes null for them, and nobody would
ever know."""

from __future__ import annotations

import math
from typing import Any

import msgspec

HINT = "JSON has neither infinity nor NaN: use None, or a text"


def encode_finite(value: Any) -> bytes:
    """Raises what msgspec raises, and `ValueError` for a number that JSON does not have, with its place."""
    encoded = msgspec.json.encode(value)
    # Only where there is a null can there have been such a number: most values are looked at no further.
    if b"null" in encoded:
        refuse_not_finite(value)
    return encoded


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
            plain = msgspec.to_builtins(one)
            if isinstance(plain, dict | list | float):
                stack.append((path, plain))
