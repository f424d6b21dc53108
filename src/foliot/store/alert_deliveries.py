"""Stores the messages of alerts until their channels have taken them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from foliot.store import queries
from foliot.store.postgres import Database

SHOWN = 100


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    id: UUID
    channel: str
    attempt: int
    created_at: datetime
    message: str
    """JSON."""


@dataclass(frozen=True, slots=True)
class Delivery:
    id: UUID
    channel: str
    event: str
    state: str
    created_at: datetime
    attempt: int
    finished_at: datetime | None
    error: str | None


class AlertDeliveries:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("alert_deliveries")

    async def claim_deliveries(self, limit: int, claim_seconds: float, per_minute: int) -> Sequence[ClaimedDelivery]:
        """At most one message of each channel."""
        rows = await self._database.fetch(
            self._queries["claim_deliveries"],
            limit=limit,
            claim_seconds=claim_seconds,
            per_minute=per_minute,
            now=self._database.clock.sql_now(),
        )
        return [ClaimedDelivery(*row) for row in rows]

    async def finish_delivery(self, claimed: ClaimedDelivery, state: str, error: str | None = None) -> None:
        await self._database.execute(
            self._queries["finish_delivery"],
            id=claimed.id,
            attempt=claimed.attempt,
            state=state,
            error=error,
            now=self._database.clock.sql_now(),
        )

    async def postpone_delivery(
        self, claimed: ClaimedDelivery, error: str, delay_seconds: float, give_up_seconds: float
    ) -> None:
        await self._database.execute(
            self._queries["postpone_delivery"],
            id=claimed.id,
            attempt=claimed.attempt,
            error=error,
            delay_seconds=delay_seconds,
            give_up_seconds=give_up_seconds,
            now=self._database.clock.sql_now(),
        )

    async def list_deliveries(self, alert_id: UUID) -> list[Delivery]:
        rows = await self._database.fetch(self._queries["list_deliveries"], alert_id=alert_id, limit=SHOWN)
        return [Delivery(*row) for row in rows]
