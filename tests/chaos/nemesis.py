"""Injects one fault after the other, chosen by a seed, and records each with its target and duration."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg

from tests.chaos.checker.attempts import FREEZING
from tests.chaos.checker.history import Fault
from tests.chaos.cluster import Cluster, Node
from tests.chaos.database import OneServer
from tests.chaos.recorder import Journal, monotonic_us
from tests.chaos.service_faults import ServiceFaults

# The time that the cluster needs after a fault has ended: a lease, a search for dead workers, a process start.
WORKER_AFTERMATH = 20.0
SCHEDULER_AFTERMATH = 12.0
DATABASE_AFTERMATH = 8.0
TRAPS = {
    "worker": ("claim_runs", "finish_runs", "retry_runs", "release_runs", "beat", "register_worker"),
    "scheduler": (
        "fire_ticks",
        "beat_scheduler",
        "take_shards",
        "promote_due_runs",
        "lose_runs",
        "admit_runs",
        "release_held",
    ),
    "server": ("insert_runs", "take_key", "keep_answer", "commit", "mark_cancelled", "close_cancelled", "change_job"),
}
CGROUPS = Path("/sys/fs/cgroup/unified")
RELEASED_SECONDS = 15.0


class Nemesis:
    def __init__(self, cluster: Cluster, journal: Journal, *, seed: int, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._journal = journal
        self._chance = random.Random(seed)
        self._say = say
        self.counts: dict[str, int] = {}
        self._on_request: dict[str, Any] = {
            "kill_worker": partial(self._kill_one, "worker"),
            "kill_scheduler": partial(self._kill_one, "scheduler"),
            "make_zombie": self._make_zombie,
            "cut_off_worker": self._cut_off_worker,
        }
        """Variants of faults in the list above: for measuring, and for trying one at a time."""
        self._faults: dict[str, Any] = {
            "kill": self._kill,
            "stop": self._stop,
            "term": self._term,
            "terminate_backends": self._terminate_backends,
            "crash_postgres": self._crash_postgres,
            "cut": self._cut,
            "delay": self._delay,
            "blackhole": self._blackhole,
            "half_open": self._half_open,
            "trap_and_cut": self._trap_and_cut,
            "trap_and_kill": self._trap_and_kill,
            "hold_snapshot": self._hold_snapshot,
            "read_only": self._read_only,
        }
        if cluster.clock is not None:
            self._faults["step_clocks"] = self._step_clocks
        if isinstance(cluster.postgres, OneServer) and cluster.postgres.disk is not None:
            self._faults["full_disk"] = self._full_disk
        self._faults |= ServiceFaults(cluster, self._chance, self._noted).names()
        if os.access(CGROUPS, os.W_OK):
            self._faults["freeze"] = self._freeze
        else:
            say("skipped: freeze, because there is no cgroup version 2 that we may write to")

    @property
    def names(self) -> list[str]:
        return list(self._faults)

    async def run(self, is_over: asyncio.Event, *, only: Sequence[str], every_seconds: float) -> None:
        names = list(only) or self.names
        while not is_over.is_set():
            # Each fault once before any repeats: otherwise a short run would miss some.
            for name in self._chance.sample(names, len(names)):
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._chance.uniform(0.5, 1.5) * every_seconds):
                        await is_over.wait()
                if is_over.is_set():
                    return
                self.counts[name] = self.counts.get(name, 0) + 1
                await (self._faults | self._on_request)[name]()

    @asynccontextmanager
    async def _noted(self, kind: str, target: Node | str, aftermath: float, detail: str = "") -> AsyncIterator[None]:
        since, process = monotonic_us(), target.pid if isinstance(target, Node) else 0
        name = target.name if isinstance(target, Node) else target
        self._say(f"{kind} {name} {detail}".rstrip())
        try:
            yield
        finally:
            healed_at = monotonic_us()
            until = healed_at + int(aftermath * 1_000_000)
            if kind in FREEZING:
                # The fault has ended for the process; the cluster still has to recover.
                self._journal.write("faults", Fault("aftermath", name, 0, healed_at, until))
                until = healed_at
            self._journal.write("faults", Fault(kind, name, process, since, until, detail, healed_at))

    def _any(self, *parts: str) -> Node:
        return self._chance.choice([node for node in self._cluster.nodes if not parts or node.part in parts])

    def _aftermath(self, node: Node) -> float:
        return {"worker": WORKER_AFTERMATH, "scheduler": SCHEDULER_AFTERMATH}.get(node.part, 5.0)

    async def _for(self, least: float, most: float) -> None:
        await asyncio.sleep(self._chance.uniform(least, most))

    async def _kill(self) -> None:
        node = self._any()
        async with self._noted("kill", node, self._aftermath(node)):
            node.kill()

    async def _kill_one(self, part: str) -> None:
        """One of the running nodes."""
        started = [node for node in self._cluster.of(part) if node.is_started]
        if len(started) > 1:
            node = self._chance.choice(started)
            async with self._noted("kill", node, self._aftermath(node)):
                node.kill()

    async def _stop(self) -> None:
        """Sometimes longer than its lease."""
        await self._stop_one(self._any(), *self._chance.choice(((0.2, 3), (0.2, 3), (10, 22))))

    async def _make_zombie(self) -> None:
        """A worker that sleeps through its lease, and wakes while other workers run its runs."""
        await self._stop_one(self._any("worker"), 16.5, 20)

    async def _stop_one(self, node: Node, least: float, most: float) -> None:
        async with self._noted("stop", node, self._aftermath(node)):
            process = node.process
            node.signal(signal.SIGSTOP)
            await self._for(least, most)
            if process is not None:
                process.signal(signal.SIGCONT)

    async def _freeze(self) -> None:
        """The whole node: the process and all its descendants."""
        node = self._any("worker", "scheduler")
        group = CGROUPS / f"foliot-chaos-{os.getpid()}-{monotonic_us()}"
        async with self._noted("freeze", node, self._aftermath(node)):
            group.mkdir()
            for process in node.process.tree() if node.process else []:
                with suppress(OSError):
                    (group / "cgroup.procs").write_text(str(process.pid))
            (group / "cgroup.freeze").write_text("1")
            try:
                await self._for(*self._chance.choice(((1, 4), (16, 22))))
            finally:
                (group / "cgroup.freeze").write_text("0")
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (CGROUPS / "cgroup.procs").write_text(pid)
        with suppress(OSError):
            group.rmdir()

    async def _term(self) -> None:
        node = self._any()
        async with self._noted("term", node, self._aftermath(node)):
            node.is_told = True
            node.signal(signal.SIGTERM)
            process = node.process
            if process is not None:
                with suppress(TimeoutError):
                    await process.wait(seconds=RELEASED_SECONDS)

    async def _terminate_backends(self) -> None:
        which = self._chance.choice(("random() < 0.3", "true"))
        async with self._noted("terminate_backends", "postgres", DATABASE_AFTERMATH, which):
            with suppress(OSError, asyncpg.PostgresError, TimeoutError):
                async with self._cluster.session() as sql:
                    await sql.execute(
                        f"select pg_terminate_backend(pid) from pg_stat_activity "
                        f"where backend_type = 'client backend' and pid <> pg_backend_pid() and {which}"
                    )

    async def _crash_postgres(self) -> None:
        number = self._chance.choice((signal.SIGKILL, signal.SIGQUIT))
        async with (
            self._cluster.changing_postgres,
            self._noted("crash_postgres", "postgres", DATABASE_AFTERMATH, number.name),
        ):
            await self._cluster.postgres.crash(number)
            await self._for(0, 3)
            await self._cluster.postgres.restart()

    async def _cut(self) -> None:
        node = self._any()
        async with self._noted("cut", node, 3.0):
            for _ in range(self._chance.randint(1, 5)):
                node.door.cut()
                await self._for(0, 0.5)

    async def _delay(self) -> None:
        node = self._any()
        seconds = self._chance.choice((0.02, 0.1, 0.4))
        async with self._noted("delay", node, self._aftermath(node), f"{seconds:g} s"):
            node.door.delay_seconds = seconds
            await self._for(3, 10)
            node.door.heal()

    async def _blackhole(self) -> None:
        """Nothing passes in either direction, and no socket reports it."""
        await self._jam(self._any(), *self._chance.choice(((1, 5), (14, 22))))

    async def _cut_off_worker(self) -> None:
        """Longer than its lease: the worker has to stop its jobs by itself."""
        await self._jam(self._any("worker"), 17, 20)

    async def _jam(self, node: Node, least: float, most: float) -> None:
        doors = [node.door, *node.links]
        async with self._noted("blackhole", node, self._aftermath(node)):
            for door in doors:
                door.jam()
            await self._for(least, most)
            is_cut = self._chance.random() < 0.5
            for door in doors:
                if is_cut:
                    door.cut()
                door.heal()

    async def _half_open(self) -> None:
        """Requests are carried out, and the answers get lost."""
        node = self._any()
        async with self._noted("half_open", node, self._aftermath(node)):
            node.door.is_deaf = True
            await self._for(2, 12)
            # A connection that lost half an answer cannot be repaired: it ends.
            node.door.cut()
            node.door.heal()

    async def _trap_and_cut(self) -> None:
        """The connection ends right before or right after a statement: COMMIT was sent, and no answer came."""
        await self._trap("trap_and_cut", is_fatal=False)

    async def _trap_and_kill(self) -> None:
        await self._trap("trap_and_kill", is_fatal=True)

    async def _trap(self, kind: str, *, is_fatal: bool) -> None:
        node = self._chance.choice([node for node in self._cluster.nodes if not node.is_remote])
        statement, is_after = self._chance.choice(TRAPS[node.part]), self._chance.random() < 0.7
        async with self._noted(kind, node, self._aftermath(node), f"{'after' if is_after else 'before'} {statement}"):
            trap = node.door.set_trap(statement, is_after=is_after, spring=node.kill if is_fatal else lambda: None)
            with suppress(TimeoutError):
                async with asyncio.timeout(6):
                    await trap.sprung.wait()
            node.door.heal()

    async def _hold_snapshot(self) -> None:
        async with self._noted("hold_snapshot", "postgres", 1.0):
            with suppress(OSError, asyncpg.PostgresError, TimeoutError):
                async with self._cluster.session() as sql:
                    await sql.execute("begin isolation level repeatable read; select count(*) from foliot.runs")
                    await self._for(10, 20)

    async def _read_only(self) -> None:
        """As after a failover: the connections look healthy, and PostgreSQL refuses every write."""
        async with self._cluster.changing_postgres, self._noted("read_only", "postgres", DATABASE_AFTERMATH):
            await self._set_read_only("on")
            await self._for(1, 5)
            await self._set_read_only("off")

    async def _set_read_only(self, value: str) -> None:
        while True:
            with suppress(OSError, asyncpg.PostgresError, TimeoutError):
                async with self._cluster.session() as sql:
                    await sql.execute(f"alter system set default_transaction_read_only = {value}")
                    await sql.execute("select pg_reload_conf()")
                    return
            await asyncio.sleep(0.2)

    async def _step_clocks(self) -> None:
        """The clocks of some machines move an hour ahead or back, and later return. PostgreSQL's clock never moves."""
        assert self._cluster.clock is not None
        shift = self._chance.choice(("-1h", "+1h", "-1", "+400d"))
        async with self._noted("step_clocks", "postgres", 0.0, shift):
            self._cluster.clock.set(shift)
            await self._for(3, 10)
            self._cluster.clock.set("+0")

    async def _full_disk(self) -> None:
        """PostgreSQL has no disk space left. When it needs some for its log, it ends."""
        postgres = self._cluster.postgres
        assert isinstance(postgres, OneServer)
        assert postgres.disk is not None
        async with self._cluster.changing_postgres, self._noted("full_disk", "postgres", DATABASE_AFTERMATH):
            postgres.disk.fill()
            await self._for(3, 8)
            postgres.disk.empty()
            # Does not wait for a failure: a write may only have been refused.
            await asyncio.sleep(0.5)
            if postgres.has_ended:
                await postgres.restart()
