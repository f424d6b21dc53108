"""One check of a value against a JSON Schema: its steps, and the fault that it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

STEPS_MAX = 50_000
"""The most values and branches that one check reads, which takes about 50 milliseconds."""

Unknown = Callable[[object], bool]


class TookTooLong(Exception):
    pass


class Fault:
    """A value that does not match. The path is built backwards while the check returns."""

    __slots__ = ("message", "path")

    def __init__(self, message: str, *path: str | int) -> None:
        self.message = message
        self.path = list(path)

    def within(self, part: str | int) -> Fault:
        self.path.append(part)
        return self

    def field(self, root: str) -> str:
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in reversed(self.path))
        return f"{root}{''.join(parts)}".removeprefix(".")


class Pass:
    """One check of one value."""

    __slots__ = ("left", "unknown")

    def __init__(self, unknown: Unknown | None) -> None:
        self.unknown = unknown
        self.left = STEPS_MAX

    def step(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TookTooLong


Check = Callable[[Any, Pass], Fault | None]
