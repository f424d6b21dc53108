"""Answers running attempts: creates the runs that durable functions call, and says whether another worker takes a
payload.

Workers with database access call this themselves. For the others, an API server does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from foliot.clock import Clock
from foliot.events import RunsSubmitted
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.store.store import Store
from foliot.submission.admission import DirectAdmission


class Calls:
    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._admission = DirectAdmission(store=store, clock=clock)

    async def call(
        self, namespace: Namespace, worker_id: UUID, run_id: UUID, token: int, name: str, job: JobRequest
    ) -> UUID | None:
        """Makes the run that a function calls, once: the id of the one that is there. None: the worker no longer holds
        the caller. Raises `Invalid`."""
        child = await self._admission.accept_run(namespace, job)
        child_id = await self._store.checkpoints.call(run_id, token, worker_id, name, job.task_name(), child)
        if child_id is None:
            return None
        if child_id == child.id:
            self._store.events.emit(RunsSubmitted(1))
        self._store.hints.send([child.queue])
        return child_id

    async def takes_elsewhere(
        self, namespace: Namespace, task: str, schema: Mapping[str, Any] | None, payload: Mapping[str, Any]
    ) -> bool:
        """Whether a live worker has a version of the task with another schema, which takes this payload."""
        known = self._admission.known_tasks
        # At most four times a second, however many runs come along.
        await known.read_again(namespace)
        return any(
            version.said.schema != schema and version.fault_in(payload, None) is None
            for version in known.versions_of(namespace, task, is_live=True)
        )
