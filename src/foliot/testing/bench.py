"""`Bench`: runs an app's jobs in memory, with a manual clock. The worker's code decides the outcome of attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar, cast
from uuid import NAMESPACE_URL, uuid5

import msgspec

from foliot.api.requests.bodies import decode
from foliot.config import Config, did_you_mean
from foliot.errors import Conflict, FoliotError, Invalid, NotFound, UnknownTask
from foliot.model.checkpoint import Awaits
from foliot.model.ids import new_id
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.model.outcome import Attempted, Outcome, decide
from foliot.model.payloads import is_template
from foliot.model.run import Claim, NewRun, RunOptions, RunView
from foliot.model.schedule import Schedule, Timetable, timetable_of
from foliot.model.states import TERMINAL, RunState
from foliot.model.tick import StoredTick
from foliot.sdk.app import App, Task
from foliot.sdk.context import Context
from foliot.sdk.http_protocol import encode
from foliot.sdk.task_exceptions import Suspended
from foliot.testing.checkpoints import BenchCheckpoints, Durability, signal_checkpoint
from foliot.testing.clients import InlineServer
from foliot.triggers.base import to_datetime, to_instant
from foliot.worker.executors.base import invalid_payload
from foliot.worker.executors.durable import durable
from foliot.worker.executors.python import asks_for_context, context_argument, succeeded
from foliot.worker.executors.task_errors import classify_error
from foliot.worker.placeholders import rendered
from foliot.worker.printed_output import capturing, writer
from foliot.worker.upstream_results import AttemptRefused

T = TypeVar("T")
START = datetime(2026, 1, 1, tzinfo=UTC)
NEVER = datetime.max.replace(tzinfo=UTC)
# Ends a test whose task submits itself forever.
ATTEMPTS_MAX = 100_000
DEFAULTS = Config()
DEFAULT_OPTIONS = RunOptions(retries=DEFAULTS.retries, timeout_seconds=DEFAULTS.timeout_seconds)
job_decoder = msgspec.json.Decoder(JobRequest)
decode_json = msgspec.json.decode


@dataclass(slots=True)
class Job:
    """A job of the bench."""

    run: NewRun
    task: Task
    options: RunOptions
    created_at: datetime
    due_at: datetime
    state: RunState
    attempt: int = 0
    token: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    outcome: Outcome | None = None
    output: bytearray = field(default_factory=bytearray)
    is_of_schedule: bool = False
    durability: Durability = field(default_factory=Durability)

    @property
    def is_open(self) -> bool:
        return self.state not in TERMINAL

    @property
    def rank(self) -> datetime:
        """The order in which due jobs run, as on a worker."""
        return self.due_at - timedelta(seconds=self.run.priority * DEFAULTS.aging_seconds)

    def view(self) -> RunView:
        last = self.outcome
        return RunView(
            id=self.run.id,
            name=self.run.name,
            task=self.run.task,
            queue=self.run.queue,
            state=self.state,
            reason=last.reason if last and not self.is_open else None,
            priority=self.run.priority,
            attempt=self.attempt,
            lost=0,
            worker_id=None,
            payload=decode_json(self.run.payload) if self.run.payload else {},
            options=decode_json(self.run.options) if self.run.options else None,
            result=decode_json(last.result) if last and last.result else None,
            error=decode_json(last.error) if last and last.error and not self.is_open else None,
            output=bytes(self.output) or None,
            due_at=self.due_at,
            created_at=self.created_at,
            started_at=self.started_at,
            finished_at=self.finished_at,
        )


class JobOutput:
    """Keeps what a job prints and logs during an attempt."""

    def __init__(self, job: Job) -> None:
        self._job, self._token = job, job.token

    def write_output(self, chunk: bytes) -> bool:
        if self._job.token != self._token or self._job.state is not RunState.RUNNING:
            return False
        self._job.output += chunk
        return True


class Bench:
    """An in-memory server for tests, created by `inline`. `now` is its current time."""

    def __init__(self, app: App, now: datetime = START) -> None:
        if now.tzinfo is None:
            raise Invalid(f"now: {now.isoformat()} has no time zone; pass an aware datetime", field="now")
        self.now = now
        self._app = app
        self._jobs: dict[str, Job] = {}
        self._by_key: dict[str, Job] = {}
        self._anchor = to_instant(now)
        self._ticks = {
            name: self._tick_after(task, now) for name, task in app.tasks.items() if task.schedule is not None
        }

    def jobs(self, task: Task | str | None = None) -> list[RunView]:
        """Returns all jobs so far, or those of one task, in order of submission."""
        name = task.name if isinstance(task, Task) else task
        return [job.view() for job in self._jobs.values() if name is None or job.run.task == name]

    def run(self) -> int:
        """Runs due jobs, including jobs that they submit, until none is due. Returns the number of attempts."""
        return _now(self.run_async())

    def advance(self, by: timedelta | float) -> int:
        """Advances the clock, in seconds or by a timedelta, and runs each job when it becomes due.

        Returns the number of attempts.
        """
        return _now(self.advance_async(by))

    def signal(self, job_id: str, name: str, payload: Any = None, *, approved: bool = True, message: str = "") -> None:
        """Sends a signal to a job, which gets it from `ctx.wait_signal(name)`. `run` lets the job go on."""
        job = self.find(job_id)
        if not job.is_open or name in job.durability.signals:
            raise Conflict(f"the job {job_id!r} is {job.state}, or has had its signal {name!r}")
        job.durability.signals[name] = signal_checkpoint(name, payload, approved=approved, message=message)
        if name in job.durability.awaited:
            self._wake(job)

    async def run_async(self) -> int:
        attempts = 0
        while due := [job for job in self._jobs.values() if job.is_open and job.due_at <= self.now]:
            await self._attempt(min(due, key=lambda job: job.rank))
            attempts += 1
            if attempts >= ATTEMPTS_MAX:
                raise FoliotError(f"jobs are still due after {attempts} attempts; does a task submit itself?")
        return attempts

    async def advance_async(self, by: timedelta | float) -> int:
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        if not seconds >= 0:
            raise Invalid(f"by: must not be negative, but is {seconds:g} s", field="by")
        end, attempts = self.now + timedelta(seconds=seconds), await self.run_async()
        while (moment := self._next_moment()) is not None and moment <= end:
            self.now = moment
            self._fire()
            attempts += await self.run_async()
        self.now = end
        return attempts

    def submit(self, fields: Mapping[str, Any]) -> tuple[Job, bool]:
        """Submits a job with fields of the API. Returns the new or existing job, and whether it is new."""
        asked = decode(encode(fields), job_decoder)
        if asked.is_recurring:
            raise Invalid("cron: not available in tests; declare the schedule with @app.task", field="cron")
        task = self._task(asked.task_name())
        task.signature.payload((), asked.payload or {}, unknown=is_template)
        key = asked.idempotency_key
        if key is not None and key in self._by_key:
            return self._by_key[key], False
        run = asked.new_run(new_id(), namespace=Namespace(), queue=task.queue)
        holder = self._holder_of(run.unique_key)
        if holder is not None and run.on_conflict != "replace":
            if run.on_conflict == "reject":
                raise Conflict(f"unique: the run {holder.run.id} has the key {run.unique_key!r} and is {holder.state}")
            return holder, False
        if holder is not None:
            del self._jobs[str(holder.run.id)]
        job = self._add(run, task, asked.run_options(Namespace()))
        if key is not None:
            self._by_key[key] = job
        return job, True

    def find(self, job_id: str) -> Job:
        try:
            return self._jobs[job_id]
        except KeyError:
            raise NotFound(f"there is no job {job_id!r} in this bench") from None

    def _holder_of(self, unique_key: str | None) -> Job | None:
        holders = (job for job in self._jobs.values() if job.is_open and job.run.unique_key == unique_key)
        return None if unique_key is None else next(holders, None)

    def _task(self, name: str) -> Task:
        task = self._app.tasks.get(name)
        if task is None:
            raise UnknownTask(
                f"task: the app has no task named {name!r}{did_you_mean(name, self._app.tasks)}", field="task"
            )
        if task.options.guarantee == "transactional":
            raise Invalid(
                f"task: {name!r} is transactional and needs a database; call its function with a connection instead",
                field="task",
            )
        return task

    def _add(self, run: NewRun, task: Task, options: RunOptions) -> Job:
        due_at = max(self.now, run.due_at or self.now + timedelta(seconds=run.delay_seconds or 0))
        state = RunState.SCHEDULED if due_at > self.now else RunState.READY
        job = Job(run, task, options.or_else(task.options).or_else(DEFAULT_OPTIONS), self.now, due_at, state)
        self._jobs[str(run.id)] = job
        return job

    async def _attempt(self, job: Job) -> None:
        job.state, job.started_at = RunState.RUNNING, self.now
        job.attempt += 1
        job.token += 1
        if job.outcome is None or job.outcome.reason != "suspended":
            job.output.clear()
        context = Context(
            run_id=job.run.id, token=job.token, attempt=job.attempt, task=job.task.name, on_output=job.output.extend
        )
        context.stored_tick = job.options.tick
        before = writer.set(JobOutput(job))
        try:
            attempted = await self._attempted(job, context)
        finally:
            writer.reset(before)
        outcome = decide(job.run.id, job.token, attempted, attempt=job.attempt, lost=0, options=job.options, chance=0.0)
        job.outcome = outcome
        if outcome.reason == "suspended":
            self._suspend(job, outcome)
            return
        if outcome.state is not RunState.SCHEDULED:
            self._end(job, outcome.state)
            return
        job.due_at = self.now + timedelta(seconds=outcome.delay_seconds)
        job.state = RunState.SCHEDULED
        if outcome.reason == "snoozed":
            job.attempt -= 1
            job.options = msgspec.structs.replace(job.options, snoozes=job.options.snoozes + 1)

    async def _attempted(self, job: Job, context: Context) -> Attempted:
        if not asks_for_context(job.task.function):
            return await _attempted(job, context)
        checkpoints = BenchCheckpoints(self, job)

        async def execute(payload: dict[str, Any], context: Context) -> Attempted:
            return await _attempted(job, context)

        executor = durable(execute, lambda *_: checkpoints, is_threaded=not job.task.is_async)
        # In a task of its own, which may be cancelled to suspend the function.
        return await asyncio.create_task(executor({}, context))

    def _suspend(self, job: Job, outcome: Outcome) -> None:
        awaits = decode_json(outcome.result or "{}", type=Awaits)
        job.attempt -= 1
        job.durability.awaited = {*(awaits.signals or ()), *(awaits.children or ())}
        job.state = RunState.HELD if awaits.signals else RunState.SCHEDULED if awaits.until else RunState.WAITING
        job.due_at = awaits.until or NEVER
        checkpoints, records = BenchCheckpoints(self, job), job.durability.checkpoints
        if any(checkpoints.ended(records[name]) is not None for name in job.durability.awaited):
            self._wake(job)

    def _wake(self, job: Job) -> None:
        job.state, job.due_at, job.durability.awaited = RunState.READY, self.now, set()

    def _end(self, job: Job, state: RunState) -> None:
        """Ends the job. A job that called it continues; jobs that it called are cancelled."""
        job.state, job.finished_at = state, self.now
        caller = job.durability.caller
        if caller is not None and caller.is_open and caller.durability.awaited:
            self._wake(caller)
        for other in self._jobs.values():
            if other.durability.caller is job and other.is_open:
                self._end(other, RunState.CANCELLED)

    def _next_moment(self) -> datetime | None:
        dues = [job.due_at for job in self._jobs.values() if job.is_open and job.due_at < NEVER]
        return min([*dues, *(tick for tick in self._ticks.values() if tick is not None)], default=None)

    def _fire(self) -> None:
        """Submits the due ticks of scheduled tasks. With overlap `skip`, an unfinished run suppresses the tick."""
        for name, tick in self._ticks.items():
            if tick is None or tick > self.now:
                continue
            task = self._app.tasks[name]
            following = self._ticks[name] = self._tick_after(task, self.now)
            is_busy = any(job.is_open and job.is_of_schedule and job.task is task for job in self._jobs.values())
            if not (is_busy and task.schedule is not None and task.schedule.overlap == "skip"):
                options = RunOptions(tick=self._stored_tick(task, tick, following))
                self._add(
                    NewRun(id=new_id(), task=name, queue=task.queue, name=name), task, options
                ).is_of_schedule = True

    def _stored_tick(self, task: Task, tick: datetime, following: datetime | None) -> StoredTick:
        schedule = cast("Schedule", task.schedule)
        previous, _ = self._timetable(task).beside(
            to_instant(tick), None if following is None else to_instant(following)
        )
        following_at = None if following is None else following.timestamp()
        job_id = uuid5(NAMESPACE_URL, task.name)
        return StoredTick(tick.timestamp(), task.name, job_id, previous, following_at, schedule.timezone)

    def _timetable(self, task: Task) -> Timetable:
        return timetable_of(cast("Schedule", task.schedule), task.name, self._anchor, None)

    def _tick_after(self, task: Task, moment: datetime) -> datetime | None:
        if task.schedule is None:
            return None
        tick = self._timetable(task).fires.next_after(to_instant(moment))
        return None if tick is None else to_datetime(tick)


@contextmanager
def inline(app: App, now: datetime = START) -> Iterator[Bench]:
    """Submits the app's jobs to a bench instead of a server, inside the `with` block."""
    bench, server = Bench(app, now), app.server
    app.server = InlineServer(bench)
    try:
        with capturing("always"):
            yield bench
    finally:
        app.server = server


async def _attempted(job: Job, context: Context) -> Attempted:
    payload = decode_json(job.run.payload) if job.run.payload else {}
    signature = job.task.signature
    try:
        if job.options.templates:
            claim = Claim(
                job.run.id, job.token, job.attempt, 0, job.run.queue, job.run.task, job.run.payload, job.run.options
            )
            payload = rendered(claim, job.options, context, payload, payload)
        arguments = signature.bind(payload)
    except AttemptRefused as refusal:
        return refusal.attempted
    except Invalid as error:
        return invalid_payload(error)
    try:
        call = partial(signature.call, **arguments, **context_argument(signature.function, context))
        if job.task.is_async:
            result = await call()
        elif asks_for_context(signature.function):
            # In a thread, because it may wait for its steps.
            result = await asyncio.to_thread(call)
        else:
            result = call()
        return succeeded(result, DEFAULTS.result_max_bytes)
    except (Exception, SystemExit, Suspended, BaseExceptionGroup) as error:
        return classify_error(error)


def _now(work: Coroutine[Any, Any, T]) -> T:
    if is_on_a_loop():
        work.close()
        raise FoliotError("an event loop is running; await run_async, advance_async and the other async variants")
    return asyncio.run(work)


def is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
