"""The part of the report that is read from the database, for a machine that reaches it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from foliot.cli.doctor.findings import Export, Finding, Picture, Queue, findings_on, notice, problem
from foliot.clock import SystemClock
from foliot.config import Config
from foliot.embedded import find_url
from foliot.errors import FoliotError, SchemaError
from foliot.events import EventBus
from foliot.store.archives import ArchiveState
from foliot.store.database_health import ProcessView, advice_on
from foliot.store.diagnosis import ExportState
from foliot.store.overview import Nodes, QueueView
from foliot.store.store import Store, open_store

WORKERS_MAX = 200
FAILURES_MAX = 20
QUEUES_MAX = 200
ALERTS_SHOWN = 10
# The doctor should not take as long as a process that waits for a failover.
PATIENCE_SECONDS = 3.0


def database_url(config: Config) -> str | None:
    return config.database_url or find_url(Path(config.data))


async def database_report(config: Config) -> tuple[dict[str, Any] | None, list[Finding]]:
    """None without a database here. Errors become findings."""
    url = database_url(config)
    if url is None:
        return None, [
            notice(
                "The doctor did not look at a database: none is configured on this machine, and no embedded one runs "
                f"in {config.data}.",
                "To include it, set FOLIOT_DATABASE_URL, or FOLIOT_DATA to the directory of `foliot up --data`.",
            )
        ]
    quick = msgspec.structs.replace(config, database_retry_seconds=PATIENCE_SECONDS, database_pool_size=4)
    try:
        async with open_store(url, config=quick, clock=SystemClock(), events=EventBus(), part="foliot doctor") as store:
            return await _read(store)
    except (FoliotError, OSError) as error:
        text = error.detail if isinstance(error, FoliotError) else str(error)
        return {"error": text}, [
            problem(f"PostgreSQL can't be used from here: {text}", "Check database_url, the network and the server.")
        ]


async def _read(store: Store) -> tuple[dict[str, Any], list[Finding]]:
    health = store.database_health
    facts = await health.read_facts()
    ahead = round((store.database.clock.now() - facts.now).total_seconds(), 3)
    try:
        await store.check_schema()
    except SchemaError as error:
        return msgspec.to_builtins({"facts": facts, "error": error.detail}), [
            problem(f"The schema does not fit this version: {error.detail}.")
        ]
    tables, (replicas, slots), processes = await asyncio.gather(
        health.list_tables(), health.list_replication(), health.list_processes()
    )
    nodes = await store.overview.count_nodes(None)
    queues = (await store.overview.list_queues(None))[:QUEUES_MAX]
    exports = await store.diagnosis.list_exports()
    archives = await store.archives.list_archives()
    alerts = [alert for alert in await store.alerts.list_unresolved() if alert.state == "open"]
    report = {
        "facts": facts,
        "clock_difference_seconds": ahead,
        "schema_version": max((process.newest for process in processes), default=None),
        "tables": tables,
        "replicas": replicas,
        "slots": slots,
        "slow_statements": await health.slow_statements() if facts.has_statements else None,
        "processes": processes,
        "schedulers": await store.shards.list_schedulers(),
        "workers": await store.diagnosis.list_live_workers(WORKERS_MAX),
        "queues": queues,
        "pauses": await store.pauses.list_pauses(),
        "exports": exports,
        "archives": archives,
        # Without the end of the output of a job, which an alert may quote.
        "alerts": [
            {name: getattr(alert, name) for name in ("rule", "subject", "severity", "opened_at", "title", "summary")}
            for alert in alerts
        ],
        "last_failures": await store.diagnosis.list_last_failures(FAILURES_MAX),
        "counts": await store.metrics.sum_tallies(),
    }
    findings = [
        Finding(advice.severity, advice.text, advice.action)
        for advice in advice_on(facts, tables, replicas, slots, ahead)
    ]
    if facts.is_standby:
        findings.append(problem("The database is a standby, which accepts no writes.", "Name the primary."))
    findings += [notice(f"An alert is open: {alert.title}") for alert in alerts[:ALERTS_SHOWN]]
    findings += findings_on(picture_of(nodes, queues, processes, exports, archives))
    return msgspec.to_builtins(report), findings


def picture_of(
    nodes: Nodes,
    queues: Sequence[QueueView],
    processes: Sequence[ProcessView],
    exports: Sequence[ExportState],
    archives: Sequence[ArchiveState],
) -> Picture:
    return Picture(
        schedulers=nodes.schedulers,
        unowned_shards=nodes.shards - nodes.owned_shards,
        workers=nodes.workers,
        queues=[
            Queue(one.name, one.ready, one.oldest_ready_seconds or 0.0, one.workers, one.paused_at is not None)
            for one in queues
        ],
        outdated=[one.name for one in processes if one.knows < one.newest],
        exports=[Export(one.name, one.is_running, one.behind_seconds) for one in exports],
        archive_errors=sorted({one.error or "no reason is known" for one in archives if one.failing_since is not None}),
    )
