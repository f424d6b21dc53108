"""The interface of where the checkpoints of an attempt are kept: the store, or the memory of a test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from foliot.model.checkpoint import Checkpoint, Kind


class Checkpoints(Protocol):
    """Where the checkpoints of an attempt are kept. Its methods raise `Stopped` when the run belongs to this attempt no
    longer."""

    starts_empty: bool
    """Nothing can have been recorded before this attempt."""
    in_place_seconds: float
    """A shorter sleep keeps its slot."""
    linger_seconds: float
    """How long nothing must happen before a function that waits in several tasks is suspended."""
    result_max_bytes: int

    def monotonic(self) -> float: ...

    async def pause(self, seconds: float) -> None: ...

    async def in_thread(self, function: Callable[[], Any]) -> Any: ...

    async def load(self) -> Sequence[Checkpoint]: ...

    async def record(
        self,
        name: str,
        kind: Kind,
        *,
        function: str | None = None,
        result: str | None = None,
        took_seconds: float = 0.0,
        wait_seconds: float | None = None,
    ) -> datetime | None: ...

    async def transact(self, name: str, function: str, work: Callable[[Any], Awaitable[str]]) -> str: ...

    async def await_signal(self, name: str, timeout_seconds: float | None) -> Checkpoint: ...

    async def call(self, name: str, job: Mapping[str, Any]) -> UUID: ...

    async def note_unused(self, names: Sequence[str]) -> None: ...
