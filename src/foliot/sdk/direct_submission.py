"""Submits jobs straight to the database, by the decisions and statements of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.ids import new_id_texts
from foliot.model.job_request import CHECKED, JobRequest
from foliot.model.namespace import Namespace
from foliot.model.payloads import WORKFLOW_TASK
from foliot.model.run import NewRun, SubmittedRun
from foliot.sdk.jobs import Alike, Made
from foliot.store.store import Store
from foliot.submission.admission import DirectAdmission
from foliot.submission.announcement import announce_runs
from foliot.submission.batcher import Batcher
from foliot.submission.restrictions import refuse_without_server
from foliot.submission.storable_json import encode_jsonb, encode_payloads
from foliot.validation_errors import to_invalid

SCHEMA_CHECK_SECONDS = 5.0
"""Between two checks of the schema, in a program that keeps submitting jobs."""
CHECKED_PAYLOADS = CHECKED | {WORKFLOW_TASK}
decode_job = msgspec.json.Decoder(JobRequest).decode


def read_job(job: Mapping[str, Any]) -> JobRequest:
    """Raises `Invalid` for fields that make no job, or none that can be stored without a server."""
    try:
        found = decode_job(encode_jsonb(dict(job)))
    except msgspec.ValidationError as error:
        raise to_invalid(error, whole="job") from None
    refuse_without_server(found)
    return found


class DirectSubmission:
    def __init__(self, *, store: Store, namespace: str) -> None:
        self._store = store
        self._namespace = Namespace(namespace)
        self._clock = store.database.clock
        self._admission = DirectAdmission(store=store, clock=self._clock)
        self._check_at = self._clock.monotonic() + SCHEMA_CHECK_SECONDS

    async def accept(self, job: JobRequest, *, is_whole: bool = True) -> NewRun:
        """Raises `SchemaError` when the schema has become one that this code can't work with."""
        if self._clock.monotonic() >= self._check_at:
            await self._store.check_schema()
            self._check_at = self._clock.monotonic() + SCHEMA_CHECK_SECONDS
        return await self._admission.accept_run(self._namespace, job, is_whole=is_whole)

    async def store_alike(self, jobs: Alike) -> list[Made]:
        """Stores all of them or none, as `store_all` does."""
        task = "shell" if "command" in jobs.fields else jobs.fields.get("task", jobs.fields.get("job_type"))
        is_checked = task in CHECKED_PAYLOADS or jobs.fields.get("templates") is not None
        one = None if is_checked else await self.accept(read_job(jobs.fields), is_whole=False)
        if one is None or one.unique_key is not None:
            runs = [await self.accept(read_job(job)) for job in jobs]
            return [(str(run.id), run.is_new) for run in await self.store_all(runs)]
        await self._admission.payloads.check_many(self._namespace, str(task), jobs.payloads)
        ids = new_id_texts(len(jobs))
        stored = await self._store.run_inserts.insert_alike(one, ids, encode_payloads(jobs.payloads))
        announce_runs(self._store, [(one.queue, stored.state)], len(ids))
        return list(zip(ids, repeat(True)))

    async def store_all(self, runs: Sequence[NewRun]) -> list[SubmittedRun]:
        """Stores all of them or none. Raises `Conflict` for a unique key that is taken, when its run rejects that."""
        found = await self._store.submissions.submit(runs)
        announce_runs(self._store, [(run.queue, run.state) for run in found], sum(run.is_new for run in found))
        return found


class DirectBatcher(Batcher[JobRequest, UUID]):
    """Stores the jobs that a program submits at the same time, from its threads and tasks, with one statement."""

    def __init__(self, *, submission: DirectSubmission, store: Store) -> None:
        super().__init__(clock=store.database.clock, events=store.events)
        self._submission = submission

    async def write(self, items: Sequence[JobRequest]) -> list[UUID | Exception]:
        accepted = [await self._accept(job) for job in items]
        runs = [run for run in accepted if isinstance(run, NewRun)]
        if runs:
            await self._submission.store_all(runs)
        return [run.id if isinstance(run, NewRun) else run for run in accepted]

    async def _accept(self, job: JobRequest) -> NewRun | Exception:
        try:
            return await self._submission.accept(job)
        except Exception as error:
            return error
