"""The same tasks in a worker that never gives up its lease. A chaos run with it must fail: otherwise the checker would
miss a missing fence."""

from __future__ import annotations

from foliot.worker.heartbeater import Heartbeater
from tests.chaos.tasks import app

__all__ = ["app"]
A_DAY = 86_400.0


def trust_for_ever(heartbeater: Heartbeater, asked_at: float, lease_seconds: float | None = None) -> None:
    heartbeater._trusted_until = asked_at + A_DAY


Heartbeater._trust_from = trust_for_ever  # type: ignore[method-assign, assignment]
