"""What a worker and a Python process of its own say to each other: one JSON object a line, over pipes. Nothing is pickled."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from foliot.model.outcome import AttemptError, Ending


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """The first word: where modules are found."""

    path: list[str]


class Call(msgspec.Struct, frozen=True, tag="call"):
    module: str
    name: str
    """The function's qualified name in it."""
    payload: dict[str, Any]
    run_id: UUID
    token: int
    attempt: int
    task: str
    result_max_bytes: int


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """The attempt is asked to end."""


class Progressed(msgspec.Struct, frozen=True, tag="progress"):
    share: float
    message: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    ending: Ending
    result: str | None = None
    error: AttemptError | None = None


encode = msgspec.json.Encoder().encode
decode_command = msgspec.json.Decoder(Begin | Call | Stop).decode
decode_answer = msgspec.json.Decoder(Progressed | Ended).decode
