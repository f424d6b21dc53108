"""An explanation why a run, job or queue waits: the gates that it passes in order, and which of them are closed."""

from __future__ import annotations

from typing import Any

import msgspec


class Gate(msgspec.Struct, frozen=True, omit_defaults=True):
    gate: str
    """The kind, for programs: dependencies, condition, due, signal, function, overlap, concurrency, rate, pause,
    circuit, queue_limit, worker, line."""
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
    """One sentence about the first closed gate, or about the state if all gates are open."""
    gates: list[Gate]


def summed_up(gates: list[Gate], otherwise: str) -> str:
    return next((gate.detail for gate in gates if not gate.is_open), otherwise)
