"""`GET /v1/tasks`: the tasks that jobs may name, with the schemas of their payloads and the workers that offer them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.pages import page_size
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.config import BUILT_IN_TASKS
from foliot.errors import Invalid, NotFound
from foliot.model.namespace import Namespace
from foliot.model.payloads import LEAVES
from foliot.model.roles import Permission
from foliot.sdk.app import NAME_PATTERN
from foliot.store.announcements import TaskVersion
from foliot.store.store import Store
from foliot.store.task_lists import TaskItem, TaskStatistics, TaskWorker
from foliot.submission.known_tasks import KnownTasks

LOOK_BACK = timedelta(days=1)
BUILT_IN = {
    "http": "Sends an HTTP request and stores the response.",
    "map": "Runs another task once for each item of a list.",
    "shell": "Runs a command.",
    "simulate": "Sleeps, and fails at random if asked to. For tests and benchmarks.",
    "wait": "Does nothing. Its job waits for a time or a signal.",
    "wait_for_file": "Waits for a file, without a slot.",
    "wait_for_row": "Waits until a query returns a row, without a slot.",
    "wait_for_url": "Waits until a URL answers as expected, without a slot.",
    "workflow": "Runs steps that depend on each other.",
}


class TaskShown(msgspec.Struct, frozen=True):
    name: str
    description: str
    """The first line of the function's docstring."""
    is_built_in: bool
    is_disabled: bool
    queue: str
    """The queue of jobs that name none."""
    tags: list[str]
    """The tags of jobs that name none."""
    guarantee: str | None
    schema: dict[str, Any] | None
    """The JSON Schema of its payload, of the latest version that live workers run. Null: any payload is accepted."""
    workers: int
    """The number of live workers that offer it."""
    versions: int
    """The number of different payload schemas that live workers have. 0 for a task without a live worker, and for a
    built-in one."""
    announced_at: datetime
    """When a worker last announced it."""
    statistics: TaskStatistics | None = None
    """Of its runs of the last day, as far as they are among the latest 20,000 that have ended. Null if there are none,
    and in lists unless `statistics=1`."""


class TaskVersionWorker(msgspec.Struct, frozen=True):
    id: UUID
    name: str


class TaskVersionShown(msgspec.Struct, frozen=True):
    """A version of the task that some live workers have. A payload is valid if at least one version accepts it."""

    description: str
    schema: dict[str, Any] | None
    is_latest: bool
    """A worker that announced this version started last."""
    workers: list[TaskVersionWorker]


class TaskDetails(TaskShown, frozen=True, kw_only=True):
    live_versions: list[TaskVersionShown]
    """The latest one first."""


class TaskPage(msgspec.Struct, frozen=True):
    items: list[TaskShown]
    next: str | None


class TaskRoutes:
    def __init__(self, *, store: Store, known_tasks: KnownTasks) -> None:
        self._store = store
        self._known_tasks = known_tasks
        self.router = APIRouter(tags=["workers"], route_class=PermissionRoute)
        add = self.router.add_api_route
        add("/v1/tasks", self.list_tasks, methods=["GET"], openapi_extra=described(200, TaskPage))
        shows = described(200, TaskDetails, problems=(404,))
        add("/v1/tasks/{name}", self.get_task, methods=["GET"], openapi_extra=shows)

    @requires(Permission.VIEW)
    async def list_tasks(
        self, namespace: Within, after: str = "", limit: int = 50, statistics: bool = False
    ) -> Response:
        """Lists the tasks that jobs may name, with the JSON Schema of their payloads, by name; with `statistics=1`,
        with the durations and failures of their latest runs."""
        limit = page_size(limit)
        if after and not NAME_PATTERN.fullmatch(after):
            raise Invalid("after: must be the `next` of the previous page, the name of a task", field="after")
        found = await self._store.task_lists.page_of_tasks(namespace, after=after or None, limit=limit + 1)
        await self._known_tasks.read_again(namespace)
        recent = await self._statistics(namespace) if statistics else {}
        items = [TaskShown(**self._fields(namespace, item, recent)) for item in found[:limit]]
        return json_response(TaskPage(items, items[-1].name if len(found) > limit else None))

    @requires(Permission.VIEW)
    async def get_task(self, name: str, namespace: Within) -> Response:
        """Shows a task, and which workers run which version of it."""
        item = await self._store.task_lists.find_task(namespace, name) if NAME_PATTERN.fullmatch(name) else None
        if item is None:
            raise NotFound(f"there is no task {name!r}")
        workers = await self._store.task_lists.workers_of_task(namespace, name)
        await self._known_tasks.read_again(namespace)
        versions = [] if item.name in BUILT_IN_TASKS else self._versions(namespace, item, workers)
        recent = await self._statistics(namespace)
        return json_response(TaskDetails(**self._fields(namespace, item, recent), live_versions=versions))

    async def _statistics(self, namespace: Namespace) -> dict[str, TaskStatistics]:
        since = await self._store.jobs.database_now() - LOOK_BACK
        return await self._store.task_lists.task_statistics(namespace, since)

    def _fields(self, namespace: Namespace, item: TaskItem, recent: Mapping[str, TaskStatistics]) -> dict[str, Any]:
        is_built_in = item.name in BUILT_IN_TASKS
        versions = () if is_built_in else self._known_tasks.versions_of(namespace, item.name)
        said = versions[0].said if versions else TaskVersion()
        return {
            "name": item.name,
            "description": BUILT_IN[item.name] if is_built_in else said.description,
            "is_built_in": is_built_in,
            "is_disabled": self._known_tasks.is_disabled(namespace, item.name),
            "queue": item.queue,
            "tags": list(item.tags),
            "guarantee": item.guarantee,
            "schema": built_in_schema(item.name) if is_built_in else said.schema,
            "workers": item.workers,
            "versions": len(self._known_tasks.versions_of(namespace, item.name, is_live=True)),
            "announced_at": item.announced_at,
            "statistics": recent.get(item.name),
        }

    def _versions(self, namespace: Namespace, item: TaskItem, workers: list[TaskWorker]) -> list[TaskVersionShown]:
        latest = self._known_tasks.said_by(namespace, item.name, item.announcement)
        found: dict[bytes, tuple[TaskVersion, list[TaskVersionWorker]]] = {}
        for worker in workers:
            said = self._known_tasks.said_by(namespace, item.name, worker.announcement) or TaskVersion()
            text = msgspec.json.encode(said.schema)
            found.setdefault(text, (said, []))[1].append(TaskVersionWorker(worker.id, worker.name))
        latest_text = None if latest is None else msgspec.json.encode(latest.schema)
        return [
            TaskVersionShown(said.description, said.schema, text == latest_text, offering)
            for text, (said, offering) in sorted(found.items(), key=lambda one: one[0] != latest_text)
        ]


def built_in_schema(name: str) -> dict[str, Any] | None:
    """The schema of a built-in task's payload. None: maps and workflows have rules that do not fit into one."""
    if (kind := LEAVES.get(name)) is None:
        return None
    _, schemas = msgspec.json.schema_components([kind])
    schema: dict[str, Any] = schemas[kind.__name__]
    return schema
