"""Facts that the rules of one evaluation look at. Each fact is read once, and only if a rule asks for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar, cast

from foliot.store.alert_endings import EndingGroup
from foliot.store.alert_rules import Heartbeat
from foliot.store.alerts import Alert
from foliot.store.store import Store

T = TypeVar("T")


class Facts:
    def __init__(
        self,
        *,
        store: Store,
        now: datetime,
        since: datetime,
        groups: Sequence[EndingGroup],
        alerts: Sequence[Alert],
    ) -> None:
        """`groups`: the endings after `since`, where the last evaluation stopped. `alerts`: all that are unresolved."""
        self.store = store
        self.now = now
        self.since = since
        self.groups = groups
        self._alerts: dict[str, list[Alert]] = {}
        for alert in alerts:
            self._alerts.setdefault(alert.rule, []).append(alert)
        self._read: dict[object, object] = {}

    def alerts_of(self, rule: str) -> Sequence[Alert]:
        return self._alerts.get(rule, ())

    async def once(self, key: object, read: Callable[[], Awaitable[T]]) -> T:
        """Several rules share what one statement reads."""
        if key not in self._read:
            self._read[key] = await read()
        return cast("T", self._read[key])

    async def heartbeats(self) -> dict[str, Heartbeat]:
        found = await self.once("heartbeats", lambda: self.store.alert_rules.list_heartbeats(None))
        return {heartbeat.name: heartbeat for heartbeat in found}
