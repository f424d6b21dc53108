"""The store as the other parts see it: one object, one repository a family of tables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.store import migrate, queries
from foliot.store.access import Access
from foliot.store.calendars import Calendars
from foliot.store.dead_letters import DeadLetters
from foliot.store.disabled_tasks import DisabledTasks
from foliot.store.explain import Explain
from foliot.store.gates import Gates
from foliot.store.hints import ALL_QUEUES_TOPIC, HintSender, worker_topic
from foliot.store.jobs import Jobs
from foliot.store.logs import Logs
from foliot.store.metrics import Metrics
from foliot.store.overview import Overview
from foliot.store.partitions import Partitions
from foliot.store.postgres import Database
from foliot.store.run_events import RunEvents
from foliot.store.run_lists import RunLists
from foliot.store.runs import Runs
from foliot.store.shards import Shards
from foliot.store.submissions import Submissions
from foliot.store.workers import Workers
from foliot.store.workflows import Workflows

CLOSE_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Store:
    database: Database
    access: Access
    runs: Runs
    submissions: Submissions
    run_lists: RunLists
    run_events: RunEvents
    dead_letters: DeadLetters
    logs: Logs
    overview: Overview
    explain: Explain
    metrics: Metrics
    jobs: Jobs
    calendars: Calendars
    gates: Gates
    disabled_tasks: DisabledTasks
    shards: Shards
    workers: Workers
    workflows: Workflows
    partitions: Partitions
    hints: HintSender
    events: EventBus

    async def migrate(self, *, is_forced: bool = False) -> int:
        return await migrate.migrate(self.database, partitions=self.partitions, events=self.events, is_forced=is_forced)

    async def end_cancelled(self) -> int:
        """Ends what was asked to end and is held by nobody, with all that it is made of, and tells those that hold the
        rest."""
        holders = await self.workflows.spread_cancels()
        closed = await self.runs.close_cancelled(CLOSE_BATCH)
        holders.update(worker_id for worker_id in closed.values() if worker_id is not None)
        self.hints.send(worker_topic(worker_id) for worker_id in holders)
        if closed:
            # What always runs may have waited for one of these.
            self.hints.send([ALL_QUEUES_TOPIC])
        return len(closed)

    async def check_schema(self) -> None:
        await migrate.check_schema(self.database)

    async def can_write(self) -> bool:
        """Asks for what a demoted node can't give: a plain `select 1` succeeds there."""
        return bool(await self.database.fetch_value(queries.load("health")["can_write"]))


@asynccontextmanager
async def open_store(
    url: str, *, config: Config, clock: Clock, events: EventBus, part: str, plans_once: bool = False
) -> AsyncIterator[Store]:
    async with Database(url, config=config, clock=clock, events=events, part=part, plans_once=plans_once) as database:
        partitions = Partitions(
            database, retention_days=config.retention_days, audit_retention_days=config.audit_retention_days
        )
        hints = HintSender(database, clock=clock, events=events)
        runs = Runs(database, aging_seconds=config.aging_seconds)
        keep_seconds = config.idempotency_hours * 3600
        await hints.start()
        try:
            yield Store(
                database=database,
                access=Access(database),
                runs=runs,
                submissions=Submissions(
                    database, runs=runs, aging_seconds=config.aging_seconds, keep_seconds=keep_seconds
                ),
                run_lists=RunLists(database),
                run_events=RunEvents(database),
                dead_letters=DeadLetters(database, aging_seconds=config.aging_seconds),
                logs=Logs(database),
                overview=Overview(database),
                explain=Explain(database),
                metrics=Metrics(database),
                jobs=Jobs(database, aging_seconds=config.aging_seconds),
                calendars=Calendars(database),
                gates=Gates(database),
                disabled_tasks=DisabledTasks(database),
                shards=Shards(database, ttl_seconds=config.shard_ttl_seconds),
                workers=Workers(database, ttl_seconds=config.worker_ttl_seconds),
                workflows=Workflows(database, aging_seconds=config.aging_seconds),
                partitions=partitions,
                hints=hints,
                events=events,
            )
        finally:
            await hints.stop()
