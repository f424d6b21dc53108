"""Builds the ASGI application: authentication, routes and problem documents."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from foliot import __version__
from foliot.api import problems
from foliot.api.fast_path import FastPath
from foliot.api.job_creation import JobCreation
from foliot.api.openapi import document, reference_page
from foliot.api.routes.audit import audit_router
from foliot.api.routes.bulk_job_actions import JobGroupActionRoutes
from foliot.api.routes.bulk_jobs import JobGroupRoutes
from foliot.api.routes.bulk_runs import RunGroupRoutes
from foliot.api.routes.calendars import calendars_router
from foliot.api.routes.dead_letters import DeadLetterRoutes
from foliot.api.routes.disabled_tasks import disabled_tasks_router
from foliot.api.routes.events import EventRoutes
from foliot.api.routes.explain import ExplainRoutes
from foliot.api.routes.gates import GateRoutes
from foliot.api.routes.health import health_router
from foliot.api.routes.jobs import JobRoutes
from foliot.api.routes.lab import LabRoutes
from foliot.api.routes.logs import logs_router
from foliot.api.routes.metrics import metrics_router
from foliot.api.routes.overview import overview_router
from foliot.api.routes.recurring import RecurringRoutes
from foliot.api.routes.run_lists import RunListRoutes
from foliot.api.routes.runs import RunRoutes
from foliot.api.routes.ticks import TickRoutes
from foliot.api.routes.tokens import tokens_router
from foliot.api.routes.workers import workers_router
from foliot.api.routes.workflows import WorkflowRoutes
from foliot.api.security.audit_log import AuditLog
from foliot.api.security.authentication import Authentication
from foliot.api.streams.limits import StreamLimits
from foliot.clock import Clock
from foliot.config import Config
from foliot.store.store import Store
from foliot.submission.admission import Admission
from foliot.submission.job_changes import JobChanges
from foliot.submission.submitter import Submitter
from foliot.submission.workflows import WorkflowSubmission

DESCRIPTION = """Jobs that run when they should, and say why when they do not.

Some rules do not fit into a schema. Named tasks, jobs and calendars must exist. Cron expressions and time zones must be
valid. Some times must lie in the future and before 2200. `until` must come after `since`. Steps of a workflow may only
name steps of the same workflow. A request that breaks one of these rules gets 422, and `detail` names the rule."""


class Application(FastAPI):
    """The FastAPI application, with authentication in front of every route."""

    authentication: ASGIApp

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
) -> Application:
    """`is_open`: local open mode, where no token is needed. `stopping`: ends open streams."""
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
    workflows = WorkflowSubmission(store=store, admission=admission)
    known_tasks = admission.known_tasks
    body_max_bytes = config.body_max_bytes
    jobs = JobRoutes(store=store, creation=creation, admission=admission, config=config)
    stopping = stopping or asyncio.Event()
    streams = StreamLimits(config)
    routers = (
        jobs.creating,
        health_router(store=store),
        JobGroupRoutes(store=store, body_max_bytes=body_max_bytes).router,
        JobGroupActionRoutes(store=store, body_max_bytes=body_max_bytes).router,
        RecurringRoutes(store=store, changes=changes, body_max_bytes=body_max_bytes).router,
        TickRoutes(store=store, known_tasks=known_tasks, body_max_bytes=body_max_bytes).router,
        jobs.router,
        WorkflowRoutes(store=store, creation=creation, submission=workflows, config=config).router,
        RunRoutes(store=store, known_tasks=known_tasks, body_max_bytes=body_max_bytes).router,
        RunGroupRoutes(store=store, body_max_bytes=body_max_bytes).router,
        disabled_tasks_router(store=store, known_tasks=known_tasks, body_max_bytes=body_max_bytes),
        GateRoutes(store=store, body_max_bytes=body_max_bytes).router,
        RunListRoutes(store=store).router,
        logs_router(store=store, clock=clock, stopping=stopping, streams=streams),
        EventRoutes(store=store, clock=clock, stopping=stopping, streams=streams).router,
        DeadLetterRoutes(store=store, body_max_bytes=body_max_bytes).router,
        workers_router(store=store),
        overview_router(store=store),
        ExplainRoutes(store=store).router,
        metrics_router(store=store, clock=clock),
        LabRoutes(store=store, creation=creation, body_max_bytes=body_max_bytes).router,
        tokens_router(store=store, body_max_bytes=body_max_bytes),
        audit_router(store=store),
        calendars_router(store=store, body_max_bytes=body_max_bytes),
    )
    for router in routers:
        # Without nesting, so that a request is matched against one flat list.
        app.router.routes.extend(router.routes)
    fast_path = FastPath(app.route_request, app.routes)
    app.authentication = Authentication(
        fast_path, store=store, audit=audit, config=config, clock=clock, is_open=is_open
    )
    return app
