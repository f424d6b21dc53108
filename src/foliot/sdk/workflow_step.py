"""A step of a workflow, and a reference to its future result."""

from __future__ import annotations

from typing import Any


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
