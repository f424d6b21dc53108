"""Stores the rules of alerts, silences and heartbeats."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from foliot.model.alert_rule import AlertRule, HeartbeatSilent
from foliot.model.namespace import Namespace, bare, namespace_of
from foliot.store import queries
from foliot.store.postgres import Database, Record

RULES_MAX = 200
"""Of one namespace."""
SILENCES_MAX = 1000
"""Of one namespace."""
ALL_MAX = 5000
decode_rule = msgspec.json.Decoder(AlertRule).decode


@dataclass(frozen=True, slots=True)
class StoredRule:
    name: str
    version: int
    created_at: datetime
    updated_at: datetime
    updated_by: str
    rule: AlertRule

    @property
    def namespace(self) -> Namespace:
        return Namespace(namespace_of(self.name))


@dataclass(frozen=True, slots=True)
class Silence:
    id: UUID
    namespace: str
    rule: str | None
    """Stored name; None for every rule of the namespace."""
    subject: str | None
    """Bare name; None for every subject."""
    reason: str
    created_at: datetime
    created_by: str
    until: datetime

    def covers(self, rule: str, subject: str) -> bool:
        """Whether it is about the alert of this rule, by its stored name, and subject."""
        if self.rule is not None and self.rule != rule:
            return False
        return namespace_of(rule) == self.namespace and self.subject in (None, bare(subject))


@dataclass(frozen=True, slots=True)
class Heartbeat:
    name: str
    at: datetime
    """Of the last one; when a rule first declared it, if there was none."""
    by: str
    number: int


class AlertRules:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("alert_rules")

    async def put_alert_rule(self, name: str, rule: AlertRule, by: str) -> StoredRule | None:
        """Returns None if the namespace has too many rules."""
        namespace = Namespace(namespace_of(name))
        condition = rule.condition
        row = await self._database.fetch_row(
            self._queries["put_alert_rule"],
            name=name,
            namespace=namespace.name,
            rule=msgspec.json.encode(rule).decode(),
            heartbeat=namespace.qualified(condition.heartbeat) if isinstance(condition, HeartbeatSilent) else None,
            by=by,
            most=RULES_MAX,
            now=self._database.clock.sql_now(),
        )
        return None if row is None else _stored(row)

    async def get_alert_rule(self, name: str) -> StoredRule | None:
        row = await self._database.fetch_row(self._queries["get_alert_rule"], name=name)
        return None if row is None else _stored(row)

    async def list_alert_rules(self, namespace: Namespace | None) -> list[StoredRule]:
        rows = await self._database.fetch(
            self._queries["list_alert_rules"], namespace=namespace and namespace.name, limit=ALL_MAX
        )
        return [_stored(row) for row in rows]

    async def delete_alert_rule(self, name: str, by: str) -> bool:
        found = await self._database.fetch_value(
            self._queries["delete_alert_rule"], name=name, by=by, now=self._database.clock.sql_now()
        )
        return found is not None

    async def add_silence(
        self, silence_id: UUID, namespace: Namespace, *, rule: str | None, subject: str | None, reason: str, by: str,
        until: datetime,
    ) -> bool:  # fmt: skip
        """Returns False if the namespace has too many."""
        return bool(
            await self._database.fetch_value(
                self._queries["add_silence"],
                id=silence_id,
                namespace=namespace.name,
                rule=rule,
                subject=subject,
                reason=reason,
                by=by,
                until=until,
                most=SILENCES_MAX,
                now=self._database.clock.sql_now(),
            )
        )

    async def list_silences(self, namespace: Namespace | None) -> list[Silence]:
        rows = await self._database.fetch(
            self._queries["list_silences"],
            namespace=namespace and namespace.name,
            limit=ALL_MAX,
            now=self._database.clock.sql_now(),
        )
        return [Silence(*row) for row in rows]

    async def delete_silence(self, silence_id: UUID, namespace: Namespace) -> bool:
        return bool(
            await self._database.execute(self._queries["delete_silence"], id=silence_id, namespace=namespace.name)
        )

    async def beat_heartbeat(self, name: str, by: str) -> bool:
        """Returns False if no rule declares the heartbeat."""
        return bool(
            await self._database.execute(
                self._queries["beat_heartbeat"], name=name, by=by, now=self._database.clock.sql_now()
            )
        )

    async def list_heartbeats(self, namespace: Namespace | None) -> list[Heartbeat]:
        rows = await self._database.fetch(
            self._queries["list_heartbeats"], namespace=namespace and namespace.name, limit=ALL_MAX
        )
        return [Heartbeat(*row) for row in rows]


def _stored(row: Record) -> StoredRule:
    name, version, created_at, updated_at, updated_by, rule = row
    return StoredRule(name, version, created_at, updated_at, updated_by, decode_rule(rule))
