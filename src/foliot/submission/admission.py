"""Decides whether a job is accepted, and makes it what is stored: a run, a run that waits for others, or a recurring
job."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foliot.clock import Clock, give_way
from foliot.errors import Invalid
from foliot.model.ids import new_id
from foliot.model.job_request import JobRequest
from foliot.model.map import MAP_TASK
from foliot.model.namespace import Namespace, bare
from foliot.model.payloads import WORKFLOW_TASK
from foliot.model.run import NewRun
from foliot.model.workflow import check_payload
from foliot.store.store import Store
from foliot.submission.back_pressure import BackPressure
from foliot.submission.calendars import find_calendar
from foliot.submission.dependencies import find_dependencies
from foliot.submission.known_tasks import KnownTasks
from foliot.submission.payload_checks import PayloadChecks
from foliot.submission.restrictions import refusal, refuse_in_batch
from foliot.submission.storage import Accepted, DependentRun, NewRecurringJob
from foliot.submission.workflow_definitions import TURN, WorkflowDefinitions

BATCH_MAX = 10_000


class CheckedJob(msgspec.Struct, frozen=True):
    """A job that would be accepted, complete, and the queue that its task declares."""

    job: JobRequest
    queue: str
    is_recurring: bool


class DirectAdmission:
    """Accepts one-off jobs without a server. It does not look at the depth of a queue, which would cost a query, nor
    complete the steps of a workflow: the worker that expands it does."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self.known_tasks = KnownTasks(store=store, clock=clock)
        self.payloads = PayloadChecks(self.known_tasks)

    async def accept_run(self, namespace: Namespace, job: JobRequest, *, is_whole: bool = True) -> NewRun:
        """Raises `Invalid`, `UnknownTask` or `TaskDisabled`. Without `is_whole`, the payload is checked apart."""
        job, queue = await self.complete(namespace, job, is_whole=is_whole)
        return job.new_run(new_id(), namespace=namespace, queue=queue)

    async def complete(self, namespace: Namespace, job: JobRequest, *, is_whole: bool = True) -> tuple[JobRequest, str]:
        """The job with what its task and its definition add, and the queue that its task declares."""
        task = job.task_name()
        if task == MAP_TASK:
            await self.known_tasks.refuse_disabled_items(namespace, task, job.payload)
        elif task == WORKFLOW_TASK:
            job = await self.complete_workflow(namespace, job)
        queue = await self.known_tasks.queue_of(namespace, task)
        if is_whole and (task == MAP_TASK or self.known_tasks.has_versions(namespace, task)):
            await self.payloads.check(namespace, task, job.payload, has_upstream=job.dependencies is not None)
        return self.known_tasks.with_declared(namespace, job), queue

    async def complete_workflow(self, namespace: Namespace, job: JobRequest) -> JobRequest:
        check_payload(WORKFLOW_TASK, job.payload, templates=job.templates, names=job.template_names)
        return job


class Admission(DirectAdmission):
    """Accepts every kind of job, on a server."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        super().__init__(store=store, clock=clock)
        self._store = store
        self._back_pressure = BackPressure(store=store, clock=clock)
        self.definitions = WorkflowDefinitions(
            known_tasks=self.known_tasks, payloads=self.payloads, back_pressure=self._back_pressure
        )

    async def accept(self, namespace: Namespace, job: JobRequest) -> Accepted:
        """Raises `Invalid`, `UnknownTask`, `TaskDisabled` or `QueueFull`."""
        job, queue = await self.complete(namespace, job)
        accepted = await self._become(namespace, job, queue)
        if self._back_pressure.knows_none_full() or isinstance(accepted, NewRecurringJob):
            return accepted
        run = accepted.run if isinstance(accepted, DependentRun) else accepted
        await self._back_pressure.check(namespace, bare(run.queue))
        return accepted

    async def check(self, namespace: Namespace, job: JobRequest) -> CheckedJob:
        """As `accept`, however full the queue is."""
        job, queue = await self.complete(namespace, job)
        return CheckedJob(job, queue, isinstance(await self._become(namespace, job, queue), NewRecurringJob))

    async def accept_batch(self, namespace: Namespace, jobs: Sequence[JobRequest], field: str = "") -> list[NewRun]:
        """Raises as `accept` does; the error names the index of the job in `field`."""
        refuse_batch_size(len(jobs))
        runs = []
        for index, job in enumerate(jobs):
            if index % TURN == TURN - 1:
                await give_way()
            try:
                job, queue = await self.complete(namespace, job)
                refuse_in_batch(job)
                run = job.new_run(new_id(), namespace=namespace, queue=queue)
            except Invalid as error:
                place = f"{field}[{index}]"
                raise type(error)(f"{place}.{error.detail}", field=f"{place}.{error.field}") from None
            await self._back_pressure.check(namespace, bare(run.queue))
            runs.append(run)
        return runs

    async def complete_workflow(self, namespace: Namespace, job: JobRequest) -> JobRequest:
        has_tick = job.template_names.has_tick
        payload = await self.definitions.of_payload(namespace, job.payload, has_tick=has_tick)
        return msgspec.structs.replace(job, payload=payload)

    async def _become(self, namespace: Namespace, job: JobRequest, queue: str) -> Accepted:
        if job.dependencies is not None:
            return await self._become_dependent(namespace, job, queue)
        if job.is_recurring:
            return await self._become_recurring(namespace, job, queue)
        return job.new_run(new_id(), namespace=namespace, queue=queue)

    async def _become_recurring(
        self, namespace: Namespace, job: JobRequest, queue: str, after: tuple[str, ...] | None = None
    ) -> NewRecurringJob:
        calendar = await find_calendar(self._store, namespace, job.calendar)
        now = await self._store.jobs.database_now()
        return NewRecurringJob(
            job.new_job(new_id(), namespace=namespace, queue=queue, now=now, calendar=calendar, after=after)
        )

    async def _become_dependent(self, namespace: Namespace, job: JobRequest, queue: str) -> Accepted:
        """Recurring if the jobs that it depends on are."""
        found = await find_dependencies(self._store, namespace, job.dependencies or ())
        if found.jobs or job.is_recurring:
            if found.run_ids:
                raise refusal("dependencies", f"{str(found.run_ids[0])!r} is no recurring job")
            names = tuple(upstream.name for upstream in found.jobs)
            job = msgspec.structs.replace(job, traceparent=None)
            made = await self._become_recurring(namespace, job, queue, names)
            return NewRecurringJob(made.job, [upstream.id for upstream in found.jobs])
        if job.unique is not None or job.signal is not None:
            raise refusal("dependencies", "can't be had together with unique or signal; make it a workflow")
        return DependentRun(job.new_run(new_id(), namespace=namespace, queue=queue), found.run_ids)


def refuse_batch_size(jobs: int) -> None:
    if not 1 <= jobs <= BATCH_MAX:
        raise refusal("jobs", f"must be 1 to {BATCH_MAX}, not {jobs}")
