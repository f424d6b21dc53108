"""Stores alerts: the process that evaluates opens and resolves them, and people acknowledge them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from foliot.model.alert_rule import Severity
from foliot.model.namespace import Namespace
from foliot.store import queries
from foliot.store.postgres import Database, Record

UNRESOLVED_MAX = 5000
WAITING_MAX = 1000
"""Messages that wait for one channel. More are dropped."""
FORGOTTEN = 1000
AlertState = Literal["pending", "open", "resolved"]


@dataclass(frozen=True, slots=True)
class Alert:
    id: UUID
    namespace: str
    rule: str
    """Stored name."""
    subject: str
    """A job, task or queue by its stored name, or empty for the whole scope of the rule."""
    state: AlertState | None
    """None only for a pending alert that is to be forgotten."""
    severity: Severity
    version: int
    """0: not stored yet."""
    since: datetime
    opened_at: datetime | None
    resolved_at: datetime | None
    resolved_by: str | None
    last_at: datetime | None
    number: int
    title: str
    summary: str
    subjects: tuple[str, ...]
    log_tail: str
    page: str
    messages: int
    told_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class NewDelivery:
    id: UUID
    alert_id: UUID
    number: int
    channel: str
    """Stored name."""
    message: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stored:
    opened: int
    changed: int
    waiting: int
    dropped: int


class Alerts:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("alerts")

    async def list_unresolved(self) -> list[Alert]:
        rows = await self._database.fetch(self._queries["list_unresolved"], limit=UNRESOLVED_MAX)
        return [_alert(row) for row in rows]

    async def store_alerts(self, owner: UUID, alerts: Sequence[Alert], deliveries: Sequence[NewDelivery]) -> Stored:
        """Stores nothing if another process evaluates by now."""
        row = await self._database.fetch_row(
            self._queries["store_alerts"],
            owner=owner,
            alerts=_encoded(alerts),
            deliveries=_encoded(deliveries),
            waiting_max=WAITING_MAX,
            now=self._database.clock.sql_now(),
        )
        assert row is not None  # noqa: S101
        return Stored(*row)

    async def list_alerts(
        self, namespace: Namespace, states: Sequence[str], *, rule: str | None, after: UUID | None, limit: int
    ) -> list[Alert]:
        rows = await self._database.fetch(
            self._queries["list_alerts"],
            namespace=namespace.name,
            states=states,
            rule=rule,
            after=after,
            limit=limit,
        )
        return [_alert(row) for row in rows]

    async def get_alert(self, alert_id: UUID, namespace: Namespace) -> Alert | None:
        row = await self._database.fetch_row(self._queries["get_alert"], id=alert_id, namespace=namespace.name)
        return None if row is None else _alert(row)

    async def acknowledge_alert(self, alert_id: UUID, namespace: Namespace, *, by: str, note: str | None) -> bool:
        """Returns False unless the alert is open."""
        found = await self._database.fetch_value(
            self._queries["acknowledge_alert"],
            id=alert_id,
            namespace=namespace.name,
            by=by,
            note=note,
            now=self._database.clock.sql_now(),
        )
        return found is not None

    async def resolve_alert(self, alert_id: UUID, namespace: Namespace, *, by: str) -> bool:
        """Returns False unless the alert is open. The next evaluation carries it out, and tells the channels."""
        found = await self._database.fetch_value(
            self._queries["resolve_alert"], id=alert_id, namespace=namespace.name, by=by
        )
        return found is not None

    async def forget_alerts(self, before: datetime) -> int:
        return int(await self._database.fetch_value(self._queries["forget_alerts"], before=before, limit=FORGOTTEN))


def _alert(row: Record) -> Alert:
    values = list(row)
    values[15] = tuple(msgspec.json.decode(values[15]))
    return Alert(*values)


def _encoded(rows: Sequence[Alert] | Sequence[NewDelivery]) -> str:
    return msgspec.json.encode(
        [{field.name: getattr(row, field.name) for field in fields(row)} for row in rows]
    ).decode()
