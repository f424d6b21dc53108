"""The ASGI application: routes, problem documents, and the guard at the door."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI

from foliot import __version__
from foliot.api import problems
from foliot.api.back_pressure import BackPressure
from foliot.api.guard import LocalGuard
from foliot.api.known_tasks import KnownTasks
from foliot.api.routes.calendars import calendars_router
from foliot.api.routes.dead_letters import DeadLetterRoutes
from foliot.api.routes.explain import ExplainRoutes
from foliot.api.routes.gates import GateRoutes
from foliot.api.routes.health import health_router
from foliot.api.routes.job_groups import JobGroupRoutes
from foliot.api.routes.jobs import JobRoutes
from foliot.api.routes.lab import LabRoutes
from foliot.api.routes.logs import logs_router
from foliot.api.routes.metrics import metrics_router
from foliot.api.routes.overview import overview_router
from foliot.api.routes.recurring import RecurringRoutes
from foliot.api.routes.run_lists import RunListRoutes
from foliot.api.routes.runs import RunRoutes
from foliot.api.routes.workers import workers_router
from foliot.api.routes.workflows import WorkflowRoutes
from foliot.api.submitter import Submitter
from foliot.api.workflow_definitions import WorkflowDefinitions
from foliot.clock import Clock
from foliot.config import Config
from foliot.store.store import Store


def build_app(*, store: Store, submitter: Submitter, config: Config, clock: Clock, stopping: asyncio.Event | None = None) -> FastAPI:
    """`stopping` ends what would go on for as long as its client likes."""
    app = FastAPI(title="Foliot", version=__version__, description="Jobs that run when they should, and say why when they do not.")
    problems.install(app)
    app.add_middleware(LocalGuard)
    known_tasks = KnownTasks(store=store, clock=clock)
    back_pressure = BackPressure(store=store, clock=clock)
    definitions = WorkflowDefinitions(known_tasks=known_tasks, back_pressure=back_pressure)
    jobs = JobRoutes(
        store=store, submitter=submitter, known_tasks=known_tasks, back_pressure=back_pressure, definitions=definitions, config=config
    )
    # First, because routes are tried in order, and no other is asked for a thousand times a second.
    app.include_router(jobs.creating)
    app.include_router(health_router(store=store))
    app.include_router(JobGroupRoutes(store=store, body_max_bytes=config.body_max_bytes).router)
    app.include_router(RecurringRoutes(store=store, definitions=definitions, body_max_bytes=config.body_max_bytes).router)
    app.include_router(jobs.router)
    app.include_router(WorkflowRoutes(store=store, jobs=jobs, definitions=definitions, config=config).router)
    app.include_router(RunRoutes(store=store, body_max_bytes=config.body_max_bytes).router)
    app.include_router(GateRoutes(store=store, body_max_bytes=config.body_max_bytes).router)
    app.include_router(RunListRoutes(store=store).router)
    app.include_router(logs_router(store=store, clock=clock, stopping=stopping or asyncio.Event(), followers_max=config.log_followers_max))
    app.include_router(DeadLetterRoutes(store=store, body_max_bytes=config.body_max_bytes).router)
    app.include_router(workers_router(store=store))
    app.include_router(overview_router(store=store))
    app.include_router(ExplainRoutes(store=store).router)
    app.include_router(metrics_router(store=store, clock=clock))
    app.include_router(LabRoutes(store=store, jobs=jobs, body_max_bytes=config.body_max_bytes).router)
    app.include_router(calendars_router(store=store, body_max_bytes=config.body_max_bytes))
    return app
