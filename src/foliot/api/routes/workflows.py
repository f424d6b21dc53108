"""`/v1/workflows`: steps that wait for each other, submitted as one, shown as one, stopped and run again as one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.lookup import find_run
from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import JobChecked, JobCreated, RecurringShown, run_name
from foliot.api.requests.bodies import decoded, read
from foliot.api.requests.idempotency import KeyedRequests, Work, answered, idempotency_key_of
from foliot.api.requests.parameters import id_of, text_of
from foliot.api.routes.jobs import JobRoutes
from foliot.api.routes.recurring import PAGE_MAX, within
from foliot.api.routes.runs import CANCELS, CancelRequest, cancel_decoder
from foliot.api.security.audit_log import NoteWithin
from foliot.api.security.permissions import GuardedRoute, Within, requires
from foliot.api.workflow_definitions import WorkflowDefinitions
from foliot.api.workflow_views import (
    WorkflowCreated,
    WorkflowPage,
    WorkflowShown,
    listed,
    not_begun,
    planned_shown,
    progress_of,
    states_of,
    step_shown,
    steps_of,
)
from foliot.config import Config
from foliot.errors import Conflict, Invalid, NotFound
from foliot.events import RunsSubmitted
from foliot.model.field_rules import Rule, not_given
from foliot.model.ids import new_id
from foliot.model.job_request import SAYS_WHEN, JobRequest
from foliot.model.map import OnFailure
from foliot.model.namespace import Namespace, bare
from foliot.model.permissions import Permission
from foliot.model.run import NO_OPTIONS, NewRun, RunOptions, RunView
from foliot.model.states import TERMINAL, RunState, status_of
from foliot.model.workflow import STEPS_MAX, WORKFLOW_TASK, Step, Workflow, plan, plan_redrive, refuse_many_steps
from foliot.store.hints import ALL_QUEUES_TOPIC, GATES_TOPIC, worker_topic
from foliot.store.known_tasks import KnownTasks
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.store.workflows import Parent

JOB_FIELDS = ("task", "job_type", "command", "payload", "signal")
# How many parents a page looks at: each costs a look at its run.
SCAN_MAX = 2_000
LAST_ID = UUID(int=(1 << 128) - 1)
DELAYED_BY = ("delay_seconds", "schedule_time", "schedule", "unique", "expires_at", "dependencies")


class WorkflowRequest(JobRequest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A workflow to run now; or, with the fields that a job has for it, later or again and again."""

    steps: Annotated[tuple[Step, ...], Meta(min_length=1)]
    on_failure: OnFailure = "continue"

    RULES: ClassVar[tuple[Rule, ...]] = (not_given(*JOB_FIELDS), SAYS_WHEN)

    def definition(self) -> Workflow:
        if misplaced := [name for name in JOB_FIELDS if getattr(self, name) is not None]:
            raise Invalid(f"{misplaced[0]}: belongs to a step", field=misplaced[0])
        return Workflow(steps=self.steps, on_failure=self.on_failure)

    def as_job(self, definition: Workflow) -> JobRequest:
        fields = {name: getattr(self, name) for name in JobRequest.__struct_fields__}
        return JobRequest(**fields | {"task": WORKFLOW_TASK, "payload": msgspec.to_builtins(definition)})


class CountedWorkflow(msgspec.Struct, frozen=True):
    """A workflow whose steps are counted, and not looked into."""

    steps: list[msgspec.Raw]


request_decoder = msgspec.json.Decoder(WorkflowRequest)
counting_decoder = msgspec.json.Decoder(CountedWorkflow)


EXAMPLES = {
    "one after the other": {
        "name": "books",
        "steps": [
            {"key": "export", "command": "echo exported"},
            {"key": "check", "task": "send_invoice", "after": ["export"]},
            {"key": "tidy", "command": "echo tidied", "after": ["check"], "rule": "all_done"},
        ],
    },
    "every night": {
        "name": "nightly-books",
        "cron": "0 2 * * *",
        "steps": [{"key": "export", "command": "echo exported"}],
    },
}


def own_options(asked: WorkflowRequest, namespace: Namespace) -> str | None:
    """Those of the workflow's own run, which no worker ever holds: what it is found by, and who is told of its end."""
    said = asked.run_options(namespace)
    options = RunOptions(metadata=said.metadata, tags=said.tags, notify=said.notify)
    return None if options == NO_OPTIONS else msgspec.json.encode(options).decode()


def _refuse_too_many(body: bytes) -> None:
    """Before any is made of them."""
    try:
        counted = counting_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # The decoder of workflows says why.
    refuse_many_steps(len(counted.steps))


@contextmanager
def steps_at_the_top() -> Iterator[None]:
    """The steps are the payload of the job that a workflow becomes. The request has them at its top, and a problem
    names them there."""
    try:
        yield
    except Invalid as error:
        if not error.field.startswith("payload."):
            raise
        raise type(error)(error.detail.removeprefix("payload."), field=error.field.removeprefix("payload.")) from None


class WorkflowRoutes:
    def __init__(
        self,
        *,
        store: Store,
        jobs: JobRoutes,
        known_tasks: KnownTasks,
        definitions: WorkflowDefinitions,
        config: Config,
    ) -> None:
        self._store = store
        self._known_tasks = known_tasks
        self._jobs = jobs
        self._definitions = definitions
        self._config = config
        self._keyed = KeyedRequests(store=store)
        self.router = APIRouter(tags=["workflows"], route_class=GuardedRoute)
        creates = described(
            201, WorkflowCreated, JobCreated, RecurringShown, body=WorkflowRequest, problems=(400, 409, 413, 415, 422, 429, 503),
            repeated=True, examples=EXAMPLES,
        )  # fmt: skip
        lists = described(200, WorkflowPage, problems=(422, 503))
        shows = described(200, WorkflowShown, problems=(404, 503))
        cancels = described(
            200, WorkflowShown, body=CancelRequest, examples=CANCELS, problems=(404, 503), is_body_optional=True
        )
        redrives = described(201, WorkflowShown, problems=(404, 409, 503))
        add = self.router.add_api_route
        add("/v1/workflows", self.create_workflow, methods=["POST"], status_code=201, openapi_extra=creates)
        checks = described(200, JobChecked, body=WorkflowRequest, examples=EXAMPLES, problems=(400, 413, 415, 422, 503))
        add("/v1/workflows/check", self.check_workflow, methods=["POST"], openapi_extra=checks)
        add("/v1/workflows", self.list_workflows, methods=["GET"], openapi_extra=lists)
        add("/v1/workflows/{reference}", self.get_workflow, methods=["GET"], openapi_extra=shows)
        add("/v1/workflows/{reference}/cancel", self.cancel_workflow, methods=["POST"], openapi_extra=cancels)
        add(
            "/v1/workflows/{reference}/redrive",
            self.redrive,
            methods=["POST"],
            status_code=201,
            operation_id="redrive_workflow",
            openapi_extra=redrives,
        )

    @requires(Permission.SUBMIT)
    async def create_workflow(self, request: Request, namespace: Within) -> Response:
        """Creates a workflow, all of it or nothing: now; later, with a delay; or again and again, with `cron` or
        `every`."""
        body = await read(request, self._config.batch_max_bytes)
        asked = await decoded(body, request_decoder, look_first=_refuse_too_many)
        key = idempotency_key_of(request, asked.idempotency_key)
        if asked.is_recurring or any(getattr(asked, name) is not None for name in DELAYED_BY):
            with steps_at_the_top():
                return await self._jobs.answer(
                    request, "create_workflow", namespace, asked.as_job(asked.definition()), key, body
                )
        note = NoteWithin(request, "create_workflow", store=self._store)
        if key is not None:
            prepare = partial(self._prepare, namespace, asked)
            return await self._keyed.answer(namespace, key, "/v1/workflows", body, prepare, self._announce, note)
        work = await self._prepare(namespace, asked)
        made = await self._store.database.in_transaction("create_workflow", note.around(work))
        note.committed()
        self._announce(made)
        return answered(made, 201, where="/v1/workflows")

    @requires(Permission.SUBMIT, reading=True)
    async def check_workflow(self, request: Request, namespace: Within) -> Response:
        """Says what a workflow would become, or what is wrong with it, as creating it would. Nothing is stored."""
        asked = await decoded(
            await read(request, self._config.batch_max_bytes), request_decoder, look_first=_refuse_too_many
        )
        with steps_at_the_top():
            return answered(await self._jobs.check(namespace, asked.as_job(asked.definition())))

    @requires(Permission.VIEW)
    async def list_workflows(
        self, namespace: Within, state: str = "", name: str = "", after: str = "", limit: int = 50
    ) -> Response:
        """Workflows that have begun, the latest first, and how far they are. Those to come are jobs and runs of the
        task `workflow`.

        `state`: running, completed, failed or cancelled; several with commas.
        """
        wanted = (
            None if not state else sorted({found for word in state.split(",") for found in states_of(word.strip())})
        )
        before = id_of(after, "after") if after else LAST_ID
        limit = within(limit, PAGE_MAX, "limit")
        page = await self._store.workflows.list_workflows(
            namespace, before, wanted, text_of(name, "name"), limit=limit, scan=max(SCAN_MAX, limit + 1)
        )
        return answered(
            WorkflowPage([listed(item) for item in page.items], str(page.following) if page.following else None)
        )

    @requires(Permission.VIEW)
    async def get_workflow(self, reference: str, namespace: Within) -> Response:
        """Shows a workflow: where it stands, and each of its steps with the latest run of it."""
        parent, run = await self._find(namespace, reference)
        return answered(await self._shown(parent, run))

    @requires(Permission.OPERATE)
    async def cancel_workflow(self, reference: str, request: Request, namespace: Within) -> Response:
        """Cancels all steps but those that always run, such as teardown; with `force` those too."""
        asked = await decoded(await read(request, self._config.body_max_bytes) or b"{}", cancel_decoder)
        parent, _ = await self._find(namespace, reference)
        why = asked.reason or "the workflow was cancelled"
        marked = await self._store.runs.mark_cancelled([parent.run_id], why, is_forced=asked.force)
        self._store.hints.send(worker_topic(worker_id) for worker_id in marked.values() if worker_id is not None)
        while await self._store.end_cancelled():
            pass
        return await self.get_workflow(reference, namespace)

    @requires(Permission.SUBMIT)
    async def redrive(self, reference: str, request: Request, namespace: Within) -> Response:
        """Runs again what failed or was cancelled, and what follows from it; what succeeded keeps its results."""
        parent, run = await self._find(namespace, reference)
        if run.state not in TERMINAL:
            raise Conflict(f"the workflow {reference!r} has not ended; cancel it first, or wait")
        if not parent.next_index:
            raise Conflict(
                f"the workflow {reference!r} ended before it began; POST /v1/runs/{parent.run_id}/rerun runs all of it"
            )
        children = await self._store.workflows.list_children(parent, STEPS_MAX)
        steps = plan_redrive(steps_of(run), {child.step: (child.id, child.state) for child in children})
        if not steps:
            raise Conflict(f"the workflow {reference!r} has nothing to run again: no step failed or was cancelled")
        # The workflow's own run waits for its steps, and no worker ever claims it.
        for task in {WORKFLOW_TASK, *(planned.step.task_name() for planned in steps)}:
            await self._known_tasks.refuse_disabled(namespace, task)
        again = {planned.step.key for planned in steps}
        options = None if run.options is None else msgspec.json.encode(run.options).decode()
        payload = msgspec.json.encode(run.payload).decode()
        new = NewRun(new_id(), run.task, run.queue, run.name, run.priority, payload=payload, options=options)
        kept = [child.state for child in children if child.step not in again]
        note = NoteWithin(request, "redrive", store=self._store)

        async def work(within: Transaction) -> WorkflowShown:
            if not await self._store.workflows.redrive_within(within, parent, new, steps, kept, run.job_id):
                raise Conflict(f"the workflow {reference!r} was run again by somebody else just now")
            # Read before the commit: a look after it could fail, and the caller would take that for a failure of the
            # redrive.
            return await self._shown(*await self._find(namespace, reference, within), is_new=True, within=within)

        made = await self._store.database.in_transaction("redrive", note.around(work))
        note.committed()
        self._store.hints.send([ALL_QUEUES_TOPIC, GATES_TOPIC])
        self._store.events.emit(RunsSubmitted(len(steps) + 1))
        return answered(made, 201, where="/v1/workflows")

    async def _prepare(self, namespace: Namespace, asked: WorkflowRequest) -> Work:
        definition = await self._definitions.complete(namespace, asked.definition())
        steps = plan(definition.steps)
        queue = asked.queue or definition.steps[0].queue or "default"
        payload = msgspec.json.encode(definition).decode()
        options = own_options(asked, namespace)
        task, line = namespace.qualified(WORKFLOW_TASK), namespace.qualified(queue)
        run = NewRun(new_id(), task, line, asked.name, asked.priority, payload=payload, options=options)
        ids = {planned.step.key: planned.id for planned in steps}
        state = RunState.WAITING

        async def work(within: Transaction) -> WorkflowCreated:
            await self._store.workflows.insert_workflow_within(within, run, steps, definition.on_failure)
            return WorkflowCreated(
                run.id, run.name, "running", state, WORKFLOW_TASK, queue, run.priority, ids, created=True
            )

        return work

    def _announce(self, made: msgspec.Struct) -> None:
        if isinstance(made, WorkflowCreated):
            self._store.hints.send([ALL_QUEUES_TOPIC, GATES_TOPIC])
            # The workflow's own run, too.
            self._store.events.emit(RunsSubmitted(len(made.steps) + 1))

    async def _find(
        self, namespace: Namespace, reference: str, within: Transaction | None = None
    ) -> tuple[Parent, RunView]:
        """By its id, or by that of any run of it; one that has not begun yet stands with all its steps before it."""
        try:
            run_id: UUID | None = UUID(reference)
        except ValueError:
            run_id = None
        while run_id is not None:
            parent = await self._store.workflows.get_parent(run_id, within=within)
            run = await find_run(self._store, namespace, parent.run_id if parent else run_id, within=within)
            if run is None or bare(run.task) != WORKFLOW_TASK:
                break
            if parent is not None:
                if run.state in TERMINAL and parent.finished_at is None:
                    # It ended between the two looks.
                    parent = await self._store.workflows.get_parent(run_id, within=within) or parent
                return parent, run
            if run.rerun_as is None:
                return not_begun(run), run
            run_id = run.rerun_as
        raise NotFound(f"there is no workflow {reference!r}")

    async def _shown(
        self, parent: Parent, run: RunView, *, is_new: bool = False, within: Transaction | None = None
    ) -> WorkflowShown:
        children = {
            child.step: child for child in await self._store.workflows.list_children(parent, STEPS_MAX, within=within)
        }
        return WorkflowShown(
            id=parent.id,
            run_id=parent.run_id,
            name=run_name(run.name, run.job_id),
            status=status_of(run.state, run.attempt) if run.state in TERMINAL or not parent.next_index else "running",
            state=run.state,
            reason=run.reason,
            on_failure=parent.on_failure,
            progress=progress_of(parent),
            created_at=parent.created_at,
            finished_at=parent.finished_at,
            error=run.error,
            job_id=run.job_id,
            tick_at=run.tick_at,
            steps=[
                step_shown(step, children[step.key]) if step.key in children else planned_shown(step, run)
                for step in steps_of(run)
            ],
            created=is_new,
        )
