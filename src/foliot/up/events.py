"""Events of `foliot up`."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.events import Event


@dataclass(frozen=True, slots=True)
class WorkersScaled(Event):
    """The pool has a new size. Workers that it gives up finish their runs first."""

    before: int
    after: int
