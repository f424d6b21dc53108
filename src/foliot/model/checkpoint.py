"""The steps that a durable function has recorded, and its waits: the rules that need no database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import msgspec

from foliot.errors import Invalid
from foliot.triggers.durations import parse_duration

Kind = Literal["step", "transaction", "sleep", "signal", "call"]
NAME_MAX = 200
# Without control characters, which terminals and logs would act on.
NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,200}")
CHECKPOINTS_MAX = 10_000
"""The largest number of records of a run."""
BYTES_MAX = 67_108_864
"""The largest total size of its results: an attempt reads all of them."""
WAIT_MAX_SECONDS = 315_360_000.0
SHOWN_MAX = 20


class CheckpointError(msgspec.Struct, frozen=True):
    """Why a wait ended without a result."""

    kind: str
    message: str = ""
    state: str = ""
    """Of a run that was called: how it ended."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One record, as an attempt gets it."""

    name: str
    kind: Kind
    function: str | None = None
    is_done: bool = True
    """False: the run waits for it."""
    result: str | None = None
    """JSON text."""
    error: CheckpointError | None = None
    due_at: datetime | None = None
    left_seconds: float | None = None
    """How long until then, by the database's clock."""
    child_id: UUID | None = None


class Awaits(msgspec.Struct, frozen=True, omit_defaults=True):
    """The events that a suspended run waits for. The first one wakes it."""

    until: datetime | None = None
    signals: list[str] | None = None
    children: dict[str, UUID] | None = None
    """By the name of the call."""

    @classmethod
    def of(cls, waits: Sequence[Checkpoint]) -> Awaits:
        return cls(
            until=min((one.due_at for one in waits if one.due_at is not None), default=None),
            signals=[one.name for one in waits if one.kind == "signal"] or None,
            children={one.name: one.child_id for one in waits if one.child_id is not None} or None,
        )


def check_checkpoint_name(name: object) -> str:
    if not isinstance(name, str):
        raise Invalid(f"name: must be text, such as 'charge', not {type(name).__name__}", field="name")
    if not NAME.fullmatch(name):
        raise Invalid(
            f"name: {name[:50]!r} must have 1 to {NAME_MAX} characters, and no control characters", field="name"
        )
    return name


def seconds_of(wait: str | float | timedelta, *, field: str) -> float:
    """A wait in seconds: of a number of seconds, a timedelta, or a text such as `1h30m`."""
    if isinstance(wait, str):
        return float(parse_duration(wait, field=field))
    seconds = wait.total_seconds() if isinstance(wait, timedelta) else float(wait)
    if not 0 <= seconds <= WAIT_MAX_SECONDS:
        raise Invalid(f"{field}: must be between 0 seconds and ten years, not {seconds:g} s", field=field)
    return seconds


def describe(awaits: Awaits, iso: str | None) -> str:
    """The waits of a suspended run, in a few words. `iso`: its instant, as text."""
    parts = []
    if awaits.signals:
        names = ", ".join(awaits.signals[:3])
        parts.append(f"waits for the signal{'s' if len(awaits.signals) > 1 else ''} {names}")
    if awaits.children:
        named = [f"{name} ({run_id})" for name, run_id in list(awaits.children.items())[:3]]
        more = len(awaits.children) - len(named)
        parts.append(f"waits for the run of {', '.join(named)}" + (f" and {more} more" if more > 0 else ""))
    if iso is not None:
        parts.append(f"until {iso} at most" if awaits.signals else f"sleeps until {iso}")
    return ", ".join(parts)
