"""Encodes what a workflow's steps refer to: other steps, their results, and parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from foliot.errors import Invalid
from foliot.model.expressions import parse
from foliot.sdk.workflow_step import Parameter, Reference, Step
from foliot.validation_errors import in_words

After: TypeAlias = "Step | str | Iterable[Step | str]"
Fields: TypeAlias = dict[str, Any]
PLACE = re.compile(r" - at `\$\.steps\[(\d+)\]\.?([^`]*)`$")


def keys_of(after: After) -> list[str]:
    given = [after] if isinstance(after, Step | str) else after
    return [step.key if isinstance(step, Step) else step for step in given]


def source_of(over: Iterable[Any] | Reference | Step, used: dict[str, None]) -> Fields:
    """The source of a map. Adds the steps that it refers to to `used`."""
    if isinstance(over, range):
        return {"range": {"start": over.start, "stop": over.stop, "step": over.step}}
    if isinstance(over, Step):
        over = over.result
    if isinstance(over, Reference):
        if over.path:
            raise Invalid(f"over: {over!r} is a part of a result; a map needs the whole result of a step", field="over")
        used[over.key] = None
        return {"result_of": over.key}
    return {"items": written(list(over), used)}


def written(value: Any, used: dict[str, None]) -> Any:
    """Encodes references in a payload. Adds the steps that they refer to to `used`."""
    if isinstance(value, Reference):
        used[value.key] = None
        return value.written()
    if isinstance(value, Parameter):
        return value.written()
    if isinstance(value, Step):
        raise Invalid(f"{value!r} is not a value; use {value.key}.result", field="payload")
    if isinstance(value, Mapping):
        return {name: written(inner, used) for name, inner in value.items()}
    return [written(inner, used) for inner in value] if isinstance(value, list | tuple) else value


def seconds_of(duration: float | timedelta) -> float:
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def add_condition(key: str, when: str, used: dict[str, None], steps: Mapping[str, Fields]) -> None:
    """Adds the steps that the condition looks at to `used`, unless they come before one of these anyway. Raises
    `Invalid` for a condition that can't be read."""
    try:
        wanted = parse(when).steps
    except Invalid as error:
        raise Invalid(f"step {key!r}: when: {error.detail}", field="when") from None
    before: set[str] = set()
    pending = list(used)
    while pending:
        one = pending.pop()
        if one not in before:
            before.add(one)
            pending.extend(steps.get(one, {}).get("after", ()))
    used.update((one, None) for one in wanted if one not in before)


def keyed(idempotency_key: str | None) -> Fields:
    return {} if idempotency_key is None else {"idempotency_key": idempotency_key}


def with_key(message: str, keys: Sequence[str]) -> str:
    """Replaces the number of a step in the message with its key."""
    found = PLACE.search(message)
    if found is None:
        return in_words(message)
    field = f"{found[2]}: " if found[2] else ""
    return f"step {keys[int(found[1])]!r}: {field}{in_words(message[: found.start()])}"
