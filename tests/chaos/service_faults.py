"""Faults of the broker, the coordinator and the standby beside a cluster."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from tests.chaos.cluster import Cluster
from tests.chaos.database import Pair
from tests.chaos.door import Door
from tests.chaos.services import Service

SERVICE_AFTERMATH = 6.0
"""Workers notice within two seconds and work from PostgreSQL; they ask it every five seconds."""
DATABASE_AFTERMATH = 8.0
Noted = Callable[[str, str, float, str], AbstractAsyncContextManager[None]]
Fault = Callable[[], Awaitable[None]]


class ServiceFaults:
    def __init__(self, cluster: Cluster, chance: random.Random, noted: Noted) -> None:
        self._cluster = cluster
        self._chance = chance
        self._noted = noted

    def names(self) -> dict[str, Fault]:
        found: dict[str, Fault] = {}
        if self._cluster.services:
            found |= {
                "kill_service": self._kill_service,
                "stop_service": self._stop_service,
                "cut_off_service": self._cut_off_service,
                "cut_off_user": self._cut_off_user,
                "wipe_service": self._wipe_service,
            }
        if isinstance(self._cluster.postgres, Pair):
            found |= {"promote": self._promote, "kill_standby": self._kill_standby, "stop_standby": self._stop_standby}
        return found

    async def _for(self, least: float, most: float) -> None:
        await asyncio.sleep(self._chance.uniform(least, most))

    def _one(self) -> Service:
        return self._chance.choice(self._cluster.services)

    async def _kill_service(self) -> None:
        """Sometimes for longer than any session lasts."""
        service = self._one()
        async with self._noted("kill_service", service.name, SERVICE_AFTERMATH, service.server.kind):
            await asyncio.to_thread(service.server.kill)
            await self._for(*self._chance.choice(((0, 2), (8, 12))))
            await asyncio.to_thread(service.server.start)

    async def _stop_service(self) -> None:
        service = self._one()
        async with self._noted("stop_service", service.name, SERVICE_AFTERMATH, service.server.kind):
            service.server.freeze()
            await self._for(*self._chance.choice(((0.5, 3), (8, 12))))
            service.server.thaw()

    async def _wipe_service(self) -> None:
        service = self._one()
        async with self._noted("wipe_service", service.name, SERVICE_AFTERMATH, service.server.kind):
            await service.wipe()

    async def _cut_off_service(self) -> None:
        """From all processes."""
        service = self._one()
        await self._cut_off(service, service.doors)

    async def _cut_off_user(self) -> None:
        """From one process, while the others reach it."""
        service = self._one()
        await self._cut_off(service, [self._chance.choice(service.doors)])

    async def _cut_off(self, service: Service, doors: list[Door]) -> None:
        how = self._chance.choice(("blackhole", "half_open", "delay", "cut"))
        detail = f"{service.server.kind}: {how} of {len(doors)} of {len(service.doors)}"
        async with self._noted("cut_off", service.name, SERVICE_AFTERMATH, detail):
            for door in doors:
                if how == "blackhole":
                    door.jam()
                elif how == "half_open":
                    door.is_deaf = True
                elif how == "delay":
                    door.delay_seconds = self._chance.choice((0.1, 0.4))
                else:
                    door.cut()
            await self._for(*self._chance.choice(((0.5, 3), (8, 14))))
            for door in doors:
                if how != "delay":
                    # A connection that lost a part of what was said can't be repaired.
                    door.cut()
                door.heal()

    async def _promote(self) -> None:
        """The primary dies, and the standby takes its place. A new standby follows after that."""
        pair = self._pair()
        async with self._cluster.changing_postgres:
            async with self._noted("promote", "postgres", DATABASE_AFTERMATH, ""):
                await asyncio.to_thread(pair.servers.kill_primary)
                # The time that a failure detector takes.
                await self._for(0, 3)
                await pair.servers.promote()
            async with self._noted("add_standby", "postgres", 1.0, ""):
                await pair.servers.add_standby()

    async def _kill_standby(self) -> None:
        """The primary commits nothing meanwhile."""
        pair = self._pair()
        async with (
            self._cluster.changing_postgres,
            self._noted("kill_standby", "postgres", DATABASE_AFTERMATH, ""),
        ):
            await asyncio.to_thread(pair.servers.kill_standby)
            await self._for(0, 4)
            await pair.servers.start_standby()

    async def _stop_standby(self) -> None:
        pair = self._pair()
        async with (
            self._cluster.changing_postgres,
            self._noted("stop_standby", "postgres", DATABASE_AFTERMATH, ""),
        ):
            pair.servers.signal_standby(signal.SIGSTOP)
            await self._for(1, 8)
            pair.servers.signal_standby(signal.SIGCONT)

    def _pair(self) -> Pair:
        assert isinstance(self._cluster.postgres, Pair)
        return self._cluster.postgres
