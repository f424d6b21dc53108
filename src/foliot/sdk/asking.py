"""Jobs straight to the database: looked at as a server would look at them, and stored by the statements that a server uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from foliot.errors import Invalid
from foliot.model.ids import new_id, new_ids
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.model.refused import refused
from foliot.model.run import NewRun, SubmittedRun
from foliot.model.states import RunState
from foliot.sdk.jobs import Alike
from foliot.sdk.transactions import encode_job
from foliot.store.hints import GATES_TOPIC
from foliot.store.known_tasks import KnownTasks
from foliot.store.store import Store

NEEDS_A_SERVER = {
    "idempotency_key": "only a server remembers those; straight to the database, use unique",
    "dependencies": "straight to the database there are none; submit it to a server",
}
decode_job = msgspec.json.Decoder(JobRequest).decode


def asked(job: Mapping[str, Any]) -> JobRequest:
    """Raises `Invalid` for what is no job, or none that can be stored without a server."""
    try:
        found = decode_job(encode_job(dict(job)))
    except msgspec.ValidationError as error:
        raise refused(error, whole="job") from None
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
        self._known_tasks = KnownTasks(store=store, clock=store.database.clock)

    async def run_of(self, job: JobRequest) -> NewRun:
        queue = await self._known_tasks.queue_of(self._namespace, job.task_name())
        return job.new_run(new_id(), namespace=self._namespace, queue=queue)

    async def runs_of(self, jobs: Alike) -> list[NewRun]:
        if "command" in jobs.fields:
            return [await self.run_of(asked(job)) for job in jobs]
        one = await self.run_of(asked(jobs.fields))
        texts = [encode_job(dict(payload)) if payload else None for payload in jobs.payloads]
        common = (one.task, one.queue, one.name, one.priority, one.due_at, one.delay_seconds)
        rest = (one.options, one.unique_key, one.on_conflict, one.expires_at)
        return [NewRun(run_id, *common, text, *rest) for run_id, text in zip(new_ids(len(texts)), texts, strict=True)]

    async def store_all(self, runs: Sequence[NewRun]) -> list[SubmittedRun]:
        """All of them or none. Raises `Conflict` for a unique key that is taken, when its run says to reject that."""
        found = await self._store.submissions.submit(runs)
        if fair := [run.id for run in runs if run.options is not None and "fairness_key" in run.options]:
            await self._store.gates.rank_fairly(fair)
        self._store.hints.send({run.queue for run in found if run.state is RunState.READY})
        if any(run.state is RunState.HELD for run in found):
            self._store.hints.send([GATES_TOPIC])
        return found
