"""Triggers made of triggers: one instant, several at once, and bounds at both ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foliot.triggers.base import LATEST, Trigger


@dataclass(frozen=True, slots=True)
class OnceTrigger:
    instant: int
    is_elapsed: ClassVar[bool] = True

    def next_after(self, instant: int) -> int | None:
        return self.instant if instant < self.instant <= LATEST else None


@dataclass(frozen=True, slots=True)
class UnionTrigger:
    """Due whenever one of them is; once where several are."""

    triggers: tuple[Trigger, ...]

    @property
    def is_elapsed(self) -> bool:
        return all(trigger.is_elapsed for trigger in self.triggers)

    def next_after(self, instant: int) -> int | None:
        return min(
            (found for trigger in self.triggers if (found := trigger.next_after(instant)) is not None), default=None
        )


@dataclass(frozen=True, slots=True)
class BoundedTrigger:
    """Nothing before `start` or after `end`; both ends count."""

    inner: Trigger
    start: int | None = None
    end: int | None = None

    @property
    def is_elapsed(self) -> bool:
        return self.inner.is_elapsed

    def next_after(self, instant: int) -> int | None:
        found = self.inner.next_after(instant if self.start is None else max(instant, self.start - 1))
        return None if found is None or (self.end is not None and found > self.end) else found
