"""References to results of earlier steps: `{"$result": "extract"}`, or `{"$result": "extract", "path": ["rows", 0]}`
for a part of one.

The steps of a workflow inside a payload refer to each other, so their references are left to that workflow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from foliot.config import did_you_mean
from foliot.errors import Invalid
from foliot.model.map import MAP_TASK
from foliot.model.payloads import REFERENCE, WORKFLOW_TASK, is_reference

Reference = Mapping[str, Any]


def check_references(task: str, payload: Mapping[str, Any] | None, items: object, after: Collection[str]) -> None:
    """Raises `Invalid` for a reference in a step's payload, or in the items of its map, to a step that it does not come
    after."""
    steps = _inner_steps(task, payload or {})
    places = (("payload", payload), ("map.items", items))
    for field, reference in (found for place, value in places for found in _references_in(value, place, steps)):
        key = reference[REFERENCE]
        if not isinstance(key, str):
            raise Invalid(f"{field}: {REFERENCE} must be the key of a step", field=field)
        if key not in after:
            hint = did_you_mean(key, after) or "; name it in after"
            raise Invalid(
                f"{field}: refers to the result of {key!r}, and the step does not come after it{hint}", field=field
            )


def with_results(task: str, payload: Mapping[str, Any], result_of: Callable[[Reference], Any]) -> dict[str, Any]:
    """The payload with a result in place of each reference."""
    steps = _inner_steps(task, payload)
    return {name: _replaced(value, result_of, steps) for name, value in payload.items()}


def _inner_steps(task: str, payload: Mapping[str, Any]) -> object:
    """The steps of the workflow that the payload is, or that it maps over."""
    inner = payload.get("payload")
    if task == MAP_TASK and payload.get("task") == WORKFLOW_TASK and isinstance(inner, dict):
        return inner.get("steps")
    return payload.get("steps") if task == WORKFLOW_TASK else None


def _references_in(value: object, place: str, besides: object) -> Iterator[tuple[str, Reference]]:
    """Recursion is safe, here and below: decoders limit the depth."""
    if isinstance(value, dict):
        if is_reference(value):
            yield place, value
            return
        for name, inner in value.items():
            yield from _references_in(inner, f"{place}.{name}", besides)
    elif isinstance(value, list) and value is not besides:
        for number, inner in enumerate(value):
            yield from _references_in(inner, f"{place}[{number}]", besides)


def _replaced(value: Any, result_of: Callable[[Reference], Any], besides: object) -> Any:
    if isinstance(value, list):
        return value if value is besides else [_replaced(inner, result_of, besides) for inner in value]
    if not isinstance(value, dict):
        return value
    if is_reference(value):
        return result_of(value)
    return {name: _replaced(inner, result_of, besides) for name, inner in value.items()}
