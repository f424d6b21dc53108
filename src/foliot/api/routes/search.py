"""`GET /v1/search`: finds anything by a part of its name, or by the beginning of its id."""

from __future__ import annotations

import asyncio
from typing import Literal

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import run_name
from foliot.api.requests.idempotency import answered
from foliot.api.requests.parameters import text_of
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import Invalid
from foliot.model.ids import id_range
from foliot.model.namespace import Namespace, bare
from foliot.model.payloads import WORKFLOW_TASK
from foliot.model.roles import Permission
from foliot.store.search import FoundName
from foliot.store.store import Store

EACH_MAX = 6
"""The number of results of each kind."""
SCANNED_MAX = 5_000
IDS_SCANNED_MAX = 200
TEXT_MAX = 200


class SearchHit(msgspec.Struct, frozen=True):
    kind: Literal["job", "task", "queue", "worker", "calendar", "run", "workflow"]
    id: str
    """The reference for other routes: the id of a run, workflow or worker; the name of anything else."""
    name: str | None
    hint: str | None
    """The task of a job or run, or the queue of a task."""


class SearchResult(msgspec.Struct, frozen=True):
    items: list[SearchHit]


def search_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["explain"], route_class=PermissionRoute)

    @requires(Permission.VIEW)
    async def search(namespace: Within, q: str = "") -> Response:
        """Finds recurring jobs, tasks, queues, workers and calendars by a part of their names, in small or capital
        letters, and runs, workflows and jobs by the first eight or more digits of their ids. At most six of each kind.

        Names of runs are not looked at: `GET /v1/runs?text=` does that.
        """
        text = (text_of(q, "q") or "").strip()
        if len(text) > TEXT_MAX:
            raise Invalid(f"q: give {TEXT_MAX} characters at most", field="q")
        if not text:
            return answered(SearchResult([]))
        named, identified = await asyncio.gather(
            store.search.search_names(namespace, text, limit=EACH_MAX, scan=SCANNED_MAX),
            _with_id(store, namespace, text),
        )
        return answered(SearchResult([*identified, *map(shown, named)]))

    router.add_api_route(
        "/v1/search", search, methods=["GET"], openapi_extra=described(200, SearchResult, problems=(422, 503))
    )
    return router


async def _with_id(store: Store, namespace: Namespace, text: str) -> list[SearchHit]:
    found_range = id_range(text)
    if found_range is None:
        return []
    found = await store.ids.find_ids(*found_range, IDS_SCANNED_MAX)
    hits = []
    for one in [one for one in found if namespace.owns(one.queue)][:EACH_MAX]:
        task = bare(one.task)
        if one.kind == "job":
            hits.append(SearchHit("job", bare(one.name or ""), bare(one.name or ""), task))
        else:
            kind: Literal["run", "workflow"] = "workflow" if task == WORKFLOW_TASK else "run"
            hits.append(SearchHit(kind, str(one.id), run_name(one.name, one.job_id), task))
    return hits


def shown(found: FoundName) -> SearchHit:
    name = bare(found.name)
    hint = None if found.hint is None else bare(found.hint)
    return SearchHit(found.kind, found.id if found.kind == "worker" else name, name, hint)  # type: ignore[arg-type]
