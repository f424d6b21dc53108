"""Builds the ASGI application: authentication, routes and problem documents."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from foliot import __version__
from foliot.api import problems
from foliot.api.fast_path import FastPath
from foliot.api.job_creation import JobCreation
from foliot.api.openapi import document, reference_page
from foliot.api.remote_workers.requests import WorkerRequests
from foliot.api.routes.alert_channels import AlertChannelRoutes
from foliot.api.routes.alert_rules import AlertRuleRoutes
from foliot.api.routes.alert_silences import AlertSilenceRoutes
from foliot.api.routes.alerts import AlertRoutes
from foliot.api.routes.approvals import approvals_router
from foliot.api.routes.audit import audit_router
from foliot.api.routes.bulk_job_actions import JobGroupActionRoutes
from foliot.api.routes.bulk_jobs import JobGroupRoutes
from foliot.api.routes.bulk_runs import RunGroupRoutes
from foliot.api.routes.calendars import calendars_router
from foliot.api.routes.checkpoints import checkpoints_router
from foliot.api.routes.circuits import circuits_router
from foliot.api.routes.dead_groups import DeadGroupRoutes
from foliot.api.routes.dead_letters import DeadLetterRoutes
from foliot.api.routes.disabled_tasks import disabled_tasks_router
from foliot.api.routes.drains import drains_router
from foliot.api.routes.events import EventRoutes
from foliot.api.routes.explain import ExplainRoutes
from foliot.api.routes.health import health_router
from foliot.api.routes.heartbeats import heartbeats_router
from foliot.api.routes.hooks import HookRoutes
from foliot.api.routes.ids import ids_router
from foliot.api.routes.installation import InstallationRoutes
from foliot.api.routes.job_charts import job_charts_router
from foliot.api.routes.job_versions import JobVersionRoutes
from foliot.api.routes.jobs import JobRoutes
from foliot.api.routes.lab import LabRoutes
from foliot.api.routes.logs import logs_router
from foliot.api.routes.metrics import metrics_router
from foliot.api.routes.overview import overview_router
from foliot.api.routes.pauses import PauseRoutes
from foliot.api.routes.pulse import pulse_router
from foliot.api.routes.queue_limits import QueueLimitRoutes
from foliot.api.routes.queues import queues_router
from foliot.api.routes.recurring import RecurringRoutes
from foliot.api.routes.replays import replays_router
from foliot.api.routes.run_lists import RunListRoutes
from foliot.api.routes.run_search import RunSearchRoutes
from foliot.api.routes.runs import RunRoutes
from foliot.api.routes.scaling import scaling_router
from foliot.api.routes.schedule_preview import SchedulePreviewRoutes
from foliot.api.routes.search import search_router
from foliot.api.routes.series import series_router
from foliot.api.routes.session import SessionRoutes
from foliot.api.routes.sources import SourceRoutes
from foliot.api.routes.tasks import TaskRoutes
from foliot.api.routes.ticks import TickRoutes
from foliot.api.routes.tokens import tokens_router
from foliot.api.routes.upcoming import upcoming_router
from foliot.api.routes.views import ViewRoutes
from foliot.api.routes.worker_protocol import WorkerProtocolRoutes
from foliot.api.routes.worker_steps import WorkerStepRoutes
from foliot.api.routes.workers import workers_router
from foliot.api.routes.workflow_graphs import WorkflowGraphRoutes
from foliot.api.routes.workflows import WorkflowRoutes
from foliot.api.security.audit_log import AuditLog
from foliot.api.security.authentication import Authentication
from foliot.api.streams.limits import StreamLimits
from foliot.clock import Clock
from foliot.config import Config
from foliot.store.store import Store
from foliot.submission.admission import Admission
from foliot.submission.job_changes import JobChanges
from foliot.submission.job_restoring import JobRestoring
from foliot.submission.submitter import Submitter
from foliot.submission.workflows import WorkflowSubmission
from foliot.ui import serving as ui

DESCRIPTION = """Schedules jobs, runs them, and explains why a job is not running.

Some rules do not fit into a schema. Named tasks, jobs and calendars must exist. Cron expressions and time zones must be
valid. Some times must lie in the future and before 2200. `until` must come after `since`. Steps of a workflow may only
name steps of the same workflow. A request that breaks one of these rules gets 422, and `detail` names the rule."""


class Application(FastAPI):
    """The FastAPI application, with authentication in front of every route."""

    authentication: ASGIApp
    from_workers: WorkerRequests
    """Close its waiting room when the server has stopped."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.authentication(scope, receive, send)

    async def route_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(scope, receive, send)


def build_app(
    *,
    store: Store,
    submitter: Submitter,
    audit: AuditLog | None,
    config: Config,
    clock: Clock,
    is_open: bool,
    stopping: asyncio.Event | None = None,
    sources: Mapping[str, str] | None = None,
    listen_url: str | None = None,
) -> Application:
    """`is_open`: local open mode, where no token is needed. `stopping`: ends open streams. `sources`: where the
    settings come from. `listen_url`: where to listen for hints, once a worker without database access waits."""
    app = Application(
        title="Foliot",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    problems.install(app)
    document.install(app)
    reference_page.install(app)
    admission = Admission(store=store, clock=clock)
    creation = JobCreation(store=store, submitter=submitter, admission=admission)
    changes = JobChanges(store=store, admission=admission)
    restoring = JobRestoring(store=store, admission=admission)
    workflows = WorkflowSubmission(store=store, admission=admission, config=config)
    known_tasks = admission.known_tasks
    body_max_bytes = config.body_max_bytes
    jobs = JobRoutes(store=store, creation=creation, admission=admission, config=config)
    stopping = stopping or asyncio.Event()
    streams = StreamLimits(config)
    app.from_workers = from_workers = WorkerRequests(
        store=store, config=config, clock=clock, listen_url=listen_url, stopping=stopping
    )
    routers = (
        jobs.creating,
        health_router(store=store),
        JobGroupRoutes(store=store, body_max_bytes=body_max_bytes).router,
        JobGroupActionRoutes(store=store, body_max_bytes=body_max_bytes).router,
        RecurringRoutes(store=store, changes=changes, body_max_bytes=body_max_bytes).router,
        JobVersionRoutes(store=store, restoring=restoring, body_max_bytes=body_max_bytes).router,
        TickRoutes(store=store, known_tasks=known_tasks, body_max_bytes=body_max_bytes).router,
        job_charts_router(store=store),
        jobs.router,
        # Before the routes of one workflow, so that /v1/workflows/grid is not taken for a workflow named grid.
        WorkflowGraphRoutes(store=store).router,
        WorkflowRoutes(store=store, creation=creation, submission=workflows, config=config).router,
        # Before the routes of one run, so that /v1/runs/count is not taken for a run named count.
        RunSearchRoutes(store=store).router,
        RunRoutes(store=store, admission=admission, config=config).router,
        RunGroupRoutes(store=store, body_max_bytes=body_max_bytes).router,
        disabled_tasks_router(store=store, known_tasks=known_tasks, body_max_bytes=body_max_bytes),
        TaskRoutes(store=store, known_tasks=known_tasks).router,
        PauseRoutes(store=store, body_max_bytes=body_max_bytes).router,
        circuits_router(store=store),
        QueueLimitRoutes(store=store, body_max_bytes=body_max_bytes).router,
        RunListRoutes(store=store).router,
        checkpoints_router(store=store),
        approvals_router(store=store),
        logs_router(store=store, clock=clock, stopping=stopping, streams=streams),
        EventRoutes(store=store, clock=clock, stopping=stopping, streams=streams).router,
        pulse_router(store=store, clock=clock, stopping=stopping, streams=streams),
        DeadLetterRoutes(store=store, payloads=admission.payloads, body_max_bytes=body_max_bytes).router,
        DeadGroupRoutes(store=store, body_max_bytes=body_max_bytes).router,
        replays_router(store=store),
        workers_router(store=store),
        WorkerProtocolRoutes(from_workers).router,
        WorkerStepRoutes(from_workers).router,
        drains_router(store=store, body_max_bytes=body_max_bytes),
        queues_router(store=store),
        scaling_router(store=store),
        overview_router(store=store),
        series_router(store=store),
        upcoming_router(store=store),
        SchedulePreviewRoutes(store=store, body_max_bytes=body_max_bytes).router,
        ExplainRoutes(store=store).router,
        ids_router(store=store),
        search_router(store=store),
        ViewRoutes(store=store, body_max_bytes=body_max_bytes).router,
        InstallationRoutes(store=store, config=config, clock=clock, streams=streams, sources=sources or {}).router,
        metrics_router(store=store, config=config, clock=clock),
        LabRoutes(store=store, creation=creation, body_max_bytes=body_max_bytes).router,
        SessionRoutes(store=store, body_max_bytes=body_max_bytes).router,
        tokens_router(store=store, body_max_bytes=body_max_bytes),
        audit_router(store=store),
        calendars_router(store=store, body_max_bytes=body_max_bytes),
        AlertChannelRoutes(store=store, config=config, clock=clock).router,
        AlertRuleRoutes(store=store, body_max_bytes=body_max_bytes).router,
        AlertRoutes(store=store, body_max_bytes=body_max_bytes).router,
        AlertSilenceRoutes(store=store, body_max_bytes=body_max_bytes).router,
        heartbeats_router(store=store),
        SourceRoutes(store=store, admission=admission, config=config).router,
        HookRoutes(store=store, admission=admission, config=config, clock=clock).router,
    )
    for router in routers:
        # Without nesting, so that a request is matched against one flat list.
        app.router.routes.extend(router.routes)
    ui.install(app, config)
    fast_path = FastPath(app.route_request, app.routes)
    app.authentication = Authentication(
        fast_path, store=store, audit=audit, config=config, clock=clock, is_open=is_open
    )
    return app
