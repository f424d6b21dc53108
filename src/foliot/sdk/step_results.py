"""Results of steps as JSON, and back as the type that the function's return annotation names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from foliot.errors import Invalid
from foliot.model.json_text import encode_storable
from foliot.sdk.signature import Signature
from foliot.sdk.task_exceptions import StepError
from foliot.sdk.value_types import ValueType


def encode_result(value: Any, name: str, most_bytes: int) -> str:
    """The JSON text of a result. Raises `StepError` for one that can't be stored."""
    try:
        encoded = encode_storable(value)
    except Exception as error:
        raise StepError(
            f"step {name!r}: its result can't be written as JSON: {error}; return plain values, a dataclass or a model"
        ) from error
    if (size := len(encoded)) > most_bytes:
        raise StepError(
            f"step {name!r}: its result has {size} bytes of JSON, more than {most_bytes}: "
            "store it elsewhere and return its location"
        )
    return encoded.decode()


def decode_result(text: str | None, wanted: ValueType, name: str) -> Any:
    """The result as the annotation names it; plain JSON values without one."""
    try:
        return wanted.convert(msgspec.json.decode(text or "null"))
    except Invalid as error:
        raise StepError(f"{name!r}: its recorded result is not what the function returns now: {error}") from error


def type_of_result(function: Callable[..., Any]) -> ValueType:
    return Signature(function).result
