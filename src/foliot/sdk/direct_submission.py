"""Jobs straight to the database: looked at as a server would look at them, and stored by the statements that a server
uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

import msgspec

from foliot.errors import Invalid
from foliot.events import RunsSubmitted
from foliot.model.ids import new_id, new_id_texts
from foliot.model.job_request import CHECKED, JobRequest
from foliot.model.namespace import Namespace
from foliot.model.run import NewRun, SubmittedRun
from foliot.model.states import RunState
from foliot.model.validation_errors import to_invalid
from foliot.model.workflow import WORKFLOW_TASK, check_payload
from foliot.sdk.jobs import Alike, Made
from foliot.sdk.transactions import encode_jsonb, encode_payloads
from foliot.store.hints import GATES_TOPIC
from foliot.store.known_tasks import KnownTasks
from foliot.store.store import Store

NEEDS_A_SERVER = {
    "idempotency_key": "only a server remembers those; straight to the database, use unique",
    "dependencies": "straight to the database there are none; submit it to a server",
}
LOOK_SECONDS = 5.0
"""Between two looks at the schema, in a program that submits jobs all the while."""
decode_job = msgspec.json.Decoder(JobRequest).decode


def asked(job: Mapping[str, Any]) -> JobRequest:
    """Raises `Invalid` for what is no job, or none that can be stored without a server."""
    try:
        found = decode_job(encode_jsonb(dict(job)))
    except msgspec.ValidationError as error:
        raise to_invalid(error, whole="job") from None
    for field, why in NEEDS_A_SERVER.items():
        if getattr(found, field) is not None:
            raise Invalid(f"{field}: {why}", field=field)
    if found.is_recurring:
        raise Invalid("cron: straight to the database there are one-off jobs only; submit it to a server", field="cron")
    return found


class Asking:
    def __init__(self, *, store: Store, namespace: str) -> None:
        self._store = store
        self._namespace = Namespace(namespace)
        self._clock = store.database.clock
        self._known_tasks = KnownTasks(store=store, clock=self._clock)
        self._look_at = self._clock.monotonic() + LOOK_SECONDS

    async def run_of(self, job: JobRequest) -> NewRun:
        """Raises `SchemaError` when the schema has become one that this code can't work with."""
        if self._clock.monotonic() >= self._look_at:
            await self._store.check_schema()
            self._look_at = self._clock.monotonic() + LOOK_SECONDS
        queue = await self._known_tasks.queue_of(self._namespace, job.task_name())
        job = self._known_tasks.with_declared(self._namespace, job)
        await self._known_tasks.refuse_disabled_items(self._namespace, job.task_name(), job.payload)
        if job.task_name() == WORKFLOW_TASK:
            check_payload(WORKFLOW_TASK, job.payload)
        return job.new_run(new_id(), namespace=self._namespace, queue=queue)

    async def store_alike(self, jobs: Alike) -> list[Made]:
        """All of them or none, as `store_all`."""
        is_looked_into = "command" in jobs.fields or jobs.fields.get("task", jobs.fields.get("job_type")) in CHECKED | {
            WORKFLOW_TASK
        }
        one = None if is_looked_into else await self.run_of(asked(jobs.fields))
        if one is None or one.unique_key is not None:
            runs = [await self.run_of(asked(job)) for job in jobs]
            return [(str(run.id), run.is_new) for run in await self.store_all(runs)]
        ids = new_id_texts(len(jobs))
        stored = await self._store.runs.insert_alike(one, ids, encode_payloads(jobs.payloads))
        self._tell([(one.queue, stored.state)], len(ids))
        return list(zip(ids, repeat(True)))

    async def store_all(self, runs: Sequence[NewRun]) -> list[SubmittedRun]:
        """All of them or none. Raises `Conflict` for a unique key that is taken, when its run says to reject that."""
        found = await self._store.submissions.submit(runs)
        self._tell([(run.queue, run.state) for run in found], sum(run.is_new for run in found))
        return found

    def _tell(self, stored: Sequence[tuple[str, RunState]], new: int) -> None:
        """Those whom it concerns. Nothing here can fail: the jobs are stored."""
        self._store.hints.send({queue for queue, state in stored if state is RunState.READY})
        if any(state is RunState.HELD for _, state in stored):
            self._store.hints.send([GATES_TOPIC])
        self._store.events.emit(RunsSubmitted(new))
