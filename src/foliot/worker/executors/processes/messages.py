"""The messages between a worker and its Python processes: one JSON object per line, over pipes. Nothing is pickled."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from foliot.model.outcome import Attempted, AttemptError, Ending
from foliot.model.tick import StoredTick


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """The first message: the module search path and the rest of the environment."""

    path: list[str]
    environment: dict[str, str] = {}


class Call(msgspec.Struct, frozen=True, tag="call"):
    module: str
    name: str
    """The function's qualified name in the module."""
    payload: dict[str, Any]
    run_id: UUID
    token: int
    attempt: int
    task: str
    result_max_bytes: int
    upstream: dict[str, Any] = {}
    signal: Any = None
    tick: StoredTick | None = None


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Asks the attempt to stop."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The process has started and received the first message."""


class Progressed(msgspec.Struct, frozen=True, tag="progress"):
    share: float
    message: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    ending: Ending
    result: str | None = None
    error: AttemptError | None = None
    delay_seconds: float | None = None
    causes: frozenset[str | int] = frozenset()
    is_retryable: bool | None = None
    is_misfit: bool = False

    @classmethod
    def of(cls, attempted: Attempted) -> Ended:
        return cls(
            attempted.ending,
            attempted.result,
            attempted.error,
            attempted.delay_seconds,
            attempted.causes,
            attempted.is_retryable,
            attempted.is_misfit,
        )

    def attempted(self) -> Attempted:
        return Attempted(
            self.ending,
            result=self.result,
            error=self.error,
            delay_seconds=self.delay_seconds,
            causes=self.causes,
            is_retryable=self.is_retryable,
            is_misfit=self.is_misfit,
        )


encode = msgspec.json.Encoder().encode
decode_command = msgspec.json.Decoder(Begin | Call | Stop).decode
decode_answer = msgspec.json.Decoder(Ready | Progressed | Ended).decode
