"""A step of a workflow, and a reference to its future result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foliot.config import did_you_mean
from foliot.errors import Invalid
from foliot.model.payloads import PARAMETER, is_later
from foliot.sdk.task_submission import Submitting


class Reference:
    """The future result of a step, or a part of it. Index it to select a part: `step.result["rows"][0]`."""

    __slots__ = ("_key", "_path")

    def __init__(self, key: str, path: tuple[str | int, ...] = ()) -> None:
        self._key = key
        self._path = path

    def __getitem__(self, part: str | int) -> Reference:
        return Reference(self._key, (*self._path, part))

    def __iter__(self) -> Any:
        raise TypeError(f"{self!r} is not available yet; iterate over it in the step that receives it")

    def __repr__(self) -> str:
        return f"<result of {self._key!r}{''.join(f'[{part!r}]' for part in self._path)}>"

    @property
    def key(self) -> str:
        return self._key

    @property
    def path(self) -> tuple[str | int, ...]:
        return self._path

    def written(self) -> dict[str, Any]:
        """The reference as encoded in a payload."""
        return {"$result": self._key} | ({"path": list(self._path)} if self._path else {})


class Parameter:
    """The future value of a parameter, or a part of it."""

    __slots__ = ("_name", "_path")

    def __init__(self, name: str, path: tuple[str | int, ...] = ()) -> None:
        self._name = name
        self._path = path

    def __getitem__(self, part: str | int) -> Parameter:
        return Parameter(self._name, (*self._path, part))

    def __iter__(self) -> Any:
        raise TypeError(f"{self!r} is not available yet; use it in a payload")

    def __repr__(self) -> str:
        return f"<parameter {self._name!r}{''.join(f'[{part!r}]' for part in self._path)}>"

    def written(self) -> dict[str, Any]:
        """The parameter as encoded in a payload."""
        return {PARAMETER: self._name} | ({"path": list(self._path)} if self._path else {})


class Parameters:
    """The parameters of a workflow, for payloads: `flow.params["region"]`."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self.schemas = {name: dict(schema) for name, schema in schemas.items()}

    def __getitem__(self, name: str) -> Parameter:
        if name not in self.schemas:
            hint = did_you_mean(name, self.schemas) or f"; the parameters are {', '.join(self.schemas) or 'none'}"
            raise Invalid(f"there is no parameter {name!r}{hint}", field="parameters")
        return Parameter(name)

    @property
    def are_required(self) -> bool:
        """Whether a parameter has no default."""
        return any("default" not in schema for schema in self.schemas.values())


class Step:
    """A step of a `Workflow`."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    @property
    def result(self) -> Reference:
        """The future result of the step, for the payloads of other steps."""
        return Reference(self.key)

    def __repr__(self) -> str:
        return f"<step {self.key!r}>"


LATER = Reference("item")
"""Stands for an item of a map, which the check of the other arguments does not look at."""


def checked_payload(
    key: str, task: Submitting[..., Any], payload: dict[str, Any], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """The payload of a step as JSON. Raises `Invalid` for arguments that the function does not take. The item of a map
    is one of the arguments."""
    item = fields["map"]["item_name"] if "map" in fields else None
    given = payload if item is None else {**payload, item: LATER.written()}
    try:
        found = dict(task.payload_of((), given, unknown=is_later))
    except Invalid as error:
        raise Invalid(f"step {key!r}: {error.detail}", field=error.field) from None
    if item is not None:
        del found[item]
    return found
