"""Opens the store: one object, with an attribute for each subject. Each attribute's module has its SQL in the file of
the same name in `sql/`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.store import migrate, queries
from foliot.store.alert_channels import AlertChannels
from foliot.store.alert_conditions import AlertConditions
from foliot.store.alert_deliveries import AlertDeliveries
from foliot.store.alert_endings import AlertEndings
from foliot.store.alert_rules import AlertRules
from foliot.store.alerts import Alerts
from foliot.store.announcements import Announcements
from foliot.store.approvals import Approvals
from foliot.store.archives import Archives
from foliot.store.attention import Attention
from foliot.store.audit_log import AuditLog
from foliot.store.backfill import Backfill
from foliot.store.calendars import Calendars
from foliot.store.cancellation import Cancellation
from foliot.store.checkpoints import Checkpoints
from foliot.store.circuit_breaker import CircuitBreaker
from foliot.store.claims import Claims
from foliot.store.conditions import Conditions
from foliot.store.database_health import DatabaseHealth
from foliot.store.dead_letters import DeadLetters
from foliot.store.dependencies import Dependencies
from foliot.store.diagnosis import Diagnosis
from foliot.store.disabled_tasks import DisabledTasks
from foliot.store.due_runs import DueRuns
from foliot.store.expiry import Expiry
from foliot.store.explain import Explain
from foliot.store.exports import Exports
from foliot.store.gone_workers import GoneWorkers
from foliot.store.hints import HintSender
from foliot.store.idempotency import Idempotency
from foliot.store.ids import Ids
from foliot.store.job_dependencies import JobDependencies
from foliot.store.job_series import JobSeriesTable
from foliot.store.job_versions import JobVersions
from foliot.store.jobs import Jobs
from foliot.store.limits import Limits
from foliot.store.logs import Logs
from foliot.store.lost_runs import LostRuns
from foliot.store.maps import Maps
from foliot.store.metrics import Metrics
from foliot.store.outcomes import Outcomes
from foliot.store.overlap import Overlap
from foliot.store.overview import Overview
from foliot.store.parked_runs import ParkedRuns
from foliot.store.partitions import Partitions
from foliot.store.pauses import Pauses
from foliot.store.pending_work import PendingWork
from foliot.store.postgres import Database
from foliot.store.pulse import Pulse
from foliot.store.queue_keys import QueueKeys
from foliot.store.queue_limits import Queues
from foliot.store.redrive import Redrive
from foliot.store.replanning import Replanning
from foliot.store.replays import Replays
from foliot.store.rollups import Rollups
from foliot.store.run_events import RunEvents
from foliot.store.run_inserts import RunInserts
from foliot.store.run_lists import RunLists
from foliot.store.run_search import RunSearch
from foliot.store.runs import Runs
from foliot.store.search import Search
from foliot.store.sessions import Sessions
from foliot.store.shards import Shards
from foliot.store.signals import Signals
from foliot.store.sources import Sources
from foliot.store.stuck_runs import StuckRuns
from foliot.store.submissions import Submissions
from foliot.store.task_lists import TaskLists
from foliot.store.ticks import Ticks
from foliot.store.tokens import Tokens
from foliot.store.unique_runs import UniqueRuns
from foliot.store.upstream_results import UpstreamResults
from foliot.store.views import Views
from foliot.store.workers import Workers
from foliot.store.workflow_graphs import WorkflowGraphs
from foliot.store.workflow_lists import WorkflowLists
from foliot.store.workflows import Workflows


@dataclass(frozen=True, slots=True)
class Store:
    database: Database
    audit_log: AuditLog
    tokens: Tokens
    sessions: Sessions
    # Runs
    runs: Runs
    run_inserts: RunInserts
    unique_runs: UniqueRuns
    submissions: Submissions
    idempotency: Idempotency
    claims: Claims
    outcomes: Outcomes
    due_runs: DueRuns
    expiry: Expiry
    lost_runs: LostRuns
    cancellation: Cancellation
    signals: Signals
    approvals: Approvals
    checkpoints: Checkpoints
    run_lists: RunLists
    run_search: RunSearch
    run_events: RunEvents
    exports: Exports
    archives: Archives
    dead_letters: DeadLetters
    replays: Replays
    logs: Logs
    explain: Explain
    # Limits and pauses
    limits: Limits
    queues: Queues
    queue_keys: QueueKeys
    parked_runs: ParkedRuns
    pauses: Pauses
    circuit_breaker: CircuitBreaker
    disabled_tasks: DisabledTasks
    announcements: Announcements
    task_lists: TaskLists
    # Recurring jobs
    jobs: Jobs
    job_dependencies: JobDependencies
    job_versions: JobVersions
    ticks: Ticks
    overlap: Overlap
    backfill: Backfill
    replanning: Replanning
    calendars: Calendars
    alert_channels: AlertChannels
    sources: Sources
    # Workflows
    workflows: Workflows
    conditions: Conditions
    maps: Maps
    dependencies: Dependencies
    upstream_results: UpstreamResults
    redrive: Redrive
    workflow_lists: WorkflowLists
    workflow_graphs: WorkflowGraphs
    stuck_runs: StuckRuns
    # Nodes, and work for all of them
    workers: Workers
    gone_workers: GoneWorkers
    shards: Shards
    pending_work: PendingWork
    partitions: Partitions
    hints: HintSender
    overview: Overview
    rollups: Rollups
    attention: Attention
    metrics: Metrics
    job_series: JobSeriesTable
    database_health: DatabaseHealth
    diagnosis: Diagnosis
    pulse: Pulse
    alert_rules: AlertRules
    alerts: Alerts
    alert_deliveries: AlertDeliveries
    alert_endings: AlertEndings
    alert_conditions: AlertConditions
    ids: Ids
    search: Search
    views: Views
    events: EventBus

    async def migrate(self, *, is_forced: bool = False) -> int:
        return await migrate.migrate(self.database, partitions=self.partitions, events=self.events, is_forced=is_forced)

    async def check_schema(self) -> None:
        await migrate.check_schema(self.database)

    async def can_write(self) -> bool:
        """Raises unless the node accepts writes. On a demoted node, a plain `select 1` would succeed."""
        return bool(await self.database.fetch_value(queries.load("health")["can_write"]))


@asynccontextmanager
async def open_store(
    url: str, *, config: Config, clock: Clock, events: EventBus, part: str, plans_once: bool = False
) -> AsyncIterator[Store]:
    async with Database(url, config=config, clock=clock, events=events, part=part, plans_once=plans_once) as database:
        archives = Archives(database)
        partitions = Partitions(
            database,
            archives=archives,
            retention_days=config.retention_days,
            audit_retention_days=config.audit_retention_days,
        )
        hints = HintSender(database, clock=clock, events=events)
        aging_seconds = config.aging_seconds
        inserts = RunInserts(database, aging_seconds=aging_seconds)
        unique_runs = UniqueRuns(database, inserts=inserts, aging_seconds=aging_seconds)
        dependencies = Dependencies(database, aging_seconds=aging_seconds)
        workflows = Workflows(database, dependencies=dependencies, aging_seconds=aging_seconds)
        workflow_lists = WorkflowLists(database)
        dead_letters = DeadLetters(database, aging_seconds=aging_seconds)
        await hints.start()
        try:
            yield Store(
                database=database,
                audit_log=AuditLog(database),
                tokens=Tokens(database),
                sessions=Sessions(database),
                runs=Runs(database),
                run_inserts=inserts,
                unique_runs=unique_runs,
                submissions=Submissions(database, inserts=inserts, unique_runs=unique_runs),
                idempotency=Idempotency(database, keep_seconds=config.idempotency_hours * 3600),
                claims=Claims(database),
                outcomes=Outcomes(database, aging_seconds=aging_seconds),
                due_runs=DueRuns(database),
                expiry=Expiry(database),
                lost_runs=LostRuns(database),
                cancellation=Cancellation(database, hints=hints),
                signals=Signals(database),
                approvals=Approvals(database),
                checkpoints=Checkpoints(database, inserts=inserts, hints=hints, aging_seconds=aging_seconds),
                run_lists=RunLists(database),
                run_search=RunSearch(database),
                run_events=RunEvents(database),
                exports=Exports(database),
                archives=archives,
                dead_letters=dead_letters,
                replays=Replays(database, dead_letters),
                logs=Logs(database),
                explain=Explain(database),
                limits=Limits(database),
                queues=Queues(database),
                queue_keys=QueueKeys(database),
                parked_runs=ParkedRuns(database),
                pauses=Pauses(database),
                circuit_breaker=CircuitBreaker(database),
                disabled_tasks=DisabledTasks(database),
                announcements=Announcements(database),
                task_lists=TaskLists(database),
                jobs=Jobs(database, aging_seconds=aging_seconds),
                job_dependencies=JobDependencies(database, aging_seconds=aging_seconds),
                job_versions=JobVersions(database),
                ticks=Ticks(database, aging_seconds=aging_seconds),
                overlap=Overlap(database),
                backfill=Backfill(database, aging_seconds=aging_seconds),
                replanning=Replanning(database),
                calendars=Calendars(database),
                alert_channels=AlertChannels(database),
                sources=Sources(database),
                workflows=workflows,
                conditions=Conditions(database),
                maps=Maps(database, workflows=workflows, aging_seconds=aging_seconds),
                dependencies=dependencies,
                upstream_results=UpstreamResults(database),
                redrive=Redrive(database, workflows=workflows, workflow_lists=workflow_lists),
                workflow_lists=workflow_lists,
                workflow_graphs=WorkflowGraphs(database),
                stuck_runs=StuckRuns(database, dependencies=dependencies),
                workers=Workers(database, ttl_seconds=config.worker_ttl_seconds),
                gone_workers=GoneWorkers(database),
                shards=Shards(database, ttl_seconds=config.shard_ttl_seconds),
                pending_work=PendingWork(database),
                partitions=partitions,
                hints=hints,
                overview=Overview(database),
                rollups=Rollups(database),
                attention=Attention(database),
                metrics=Metrics(database),
                job_series=JobSeriesTable(database),
                pulse=Pulse(database),
                alert_rules=AlertRules(database),
                alerts=Alerts(database),
                alert_deliveries=AlertDeliveries(database),
                alert_endings=AlertEndings(database),
                alert_conditions=AlertConditions(database),
                ids=Ids(database),
                database_health=DatabaseHealth(database),
                diagnosis=Diagnosis(database),
                search=Search(database),
                views=Views(database),
                events=events,
            )
        finally:
            await hints.stop()
