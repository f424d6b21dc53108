"""Why something does not run, as an answer: the gates that it passes one after the other, and which of them holds
it."""

from __future__ import annotations

from typing import Any

import msgspec


class Gate(msgspec.Struct, frozen=True, omit_defaults=True):
    gate: str
    """The machine's word: dependencies, due, signal, overlap, concurrency, rate, pause, circuit, queue_limit, worker,
    line."""
    is_open: bool
    detail: str
    numbers: dict[str, Any] = {}


class Explanation(msgspec.Struct, frozen=True):
    id: str
    kind: str
    """run, workflow, map, job or queue."""
    name: str | None
    state: str
    summary: str
    """The first gate that is closed, or what else there is to say, in one sentence."""
    gates: list[Gate]


def summed_up(gates: list[Gate], otherwise: str) -> str:
    return next((gate.detail for gate in gates if not gate.is_open), otherwise)
