"""`/v1/workflows`: creates, lists, shows, cancels and redrives workflows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.cancellation import CANCELS, CancelRequest, cancel_decoder
from foliot.api.job_creation import JobCreation
from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import JobChecked, JobCreated, RecurringShown
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.idempotency import IdempotentRequests, Work, answered, idempotency_key_of
from foliot.api.requests.pages import page_size
from foliot.api.requests.parameters import id_of, text_of
from foliot.api.requests.traces import in_trace_of
from foliot.api.security.audit_log import NoteWithin
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.api.workflow_views import (
    WorkflowCreated,
    WorkflowPage,
    WorkflowShown,
    find_workflow,
    listed,
    show_workflow,
    states_of,
)
from foliot.config import Config
from foliot.errors import Invalid
from foliot.model.namespace import Namespace, bare
from foliot.model.payloads import WORKFLOW_TASK
from foliot.model.roles import Permission
from foliot.model.states import RunState
from foliot.model.workflow import refuse_many_steps
from foliot.model.workflow_request import WorkflowRequest
from foliot.store.hints import worker_topic
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.submission.workflows import Redrive, WorkflowSubmission

# The workflows that a page reads at most, each with its run.
SCAN_MAX = 2_000
LAST_ID = UUID(int=(1 << 128) - 1)


class CountedWorkflow(msgspec.Struct, frozen=True):
    """A workflow whose steps are counted, not decoded."""

    steps: list[msgspec.Raw]


class RedriveRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dry_run: bool = False
    """Only show which steps would run again."""


class StepAgain(msgspec.Struct, frozen=True):
    key: str
    state: str | None
    """How it ended. Null if it has left the history."""
    because: Literal["failed", "cancelled", "unknown", "after"]
    """after: it ended otherwise, but follows a step that runs again."""


class StepKept(msgspec.Struct, frozen=True):
    key: str
    state: str


class RedrivePlan(msgspec.Struct, frozen=True):
    again: list[StepAgain]
    kept: list[StepKept]
    """The steps that keep their results."""
    dry_run: bool = True


redrive_decoder = msgspec.json.Decoder(RedriveRequest)
REDRIVES = {"run the failed part again": {}, "look first": {"dry_run": True}}
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


def _refuse_too_many(body: bytes) -> None:
    """Refuses a workflow with too many steps before decoding them."""
    try:
        counted = counting_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # The decoder of workflows reports the error.
    refuse_many_steps(len(counted.steps))


@contextmanager
def steps_at_the_top() -> Iterator[None]:
    """Removes `payload.` from the field of an error: a workflow becomes a job with the steps in its payload, but the
    request has them at the top level."""
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
        creation: JobCreation,
        submission: WorkflowSubmission,
        config: Config,
    ) -> None:
        self._store = store
        self._creation = creation
        self._submission = submission
        self._config = config
        self._idempotent_requests = IdempotentRequests(store=store)
        self.router = APIRouter(tags=["workflows"], route_class=PermissionRoute)
        creates = described(
            201,
            WorkflowCreated,
            JobCreated,
            RecurringShown,
            body=WorkflowRequest,
            problems=(400, 409, 413, 415, 422, 429, 503),
            repeated=True,
            examples=EXAMPLES,
        )
        lists = described(200, WorkflowPage, problems=(422, 503))
        shows = described(200, WorkflowShown, problems=(404, 503))
        cancels = described(
            200, WorkflowShown, body=CancelRequest, examples=CANCELS, problems=(404, 503), is_body_optional=True
        )
        redrives = described(
            201,
            WorkflowShown,
            RedrivePlan,
            body=RedriveRequest,
            examples=REDRIVES,
            problems=(404, 409, 503),
            is_body_optional=True,
            rehearsed=True,
        )
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
        """Creates a workflow, all of it or nothing: now, later with a delay, or repeatedly with `cron` or `every`."""
        body = await read(request, self._config.batch_max_bytes)
        asked = in_trace_of(request, await decoded(body, request_decoder, look_first=_refuse_too_many))
        key = idempotency_key_of(request, asked.idempotency_key)
        if not asked.is_immediate:
            with steps_at_the_top():
                return await self._creation.answer(
                    request, "create_workflow", namespace, asked.as_job(asked.definition()), key, body
                )
        note = NoteWithin(request, "create_workflow", store=self._store)
        if key is not None:
            prepare = partial(self._prepare, namespace, asked)
            return await self._idempotent_requests.answer(
                namespace, key, "/v1/workflows", body, prepare, self._announce, note
            )
        work = await self._prepare(namespace, asked)
        made = await self._store.database.in_transaction("create_workflow", note.around(work))
        note.committed()
        self._announce(made)
        return answered(made, 201, where="/v1/workflows")

    @requires(Permission.SUBMIT, reading=True)
    async def check_workflow(self, request: Request, namespace: Within) -> Response:
        """Checks a workflow as creating it would, and shows the result without storing it."""
        asked = await decoded(
            await read(request, self._config.batch_max_bytes), request_decoder, look_first=_refuse_too_many
        )
        with steps_at_the_top():
            return answered(await self._creation.check(namespace, asked.as_job(asked.definition())))

    @requires(Permission.VIEW)
    async def list_workflows(
        self, namespace: Within, state: str = "", name: str = "", after: str = "", limit: int = 50
    ) -> Response:
        """Lists started workflows with their progress, latest first. Workflows that have not started are jobs and runs
        of the task `workflow`.

        `state`: running, completed, failed or cancelled, separated by commas.
        """
        wanted = (
            None if not state else sorted({found for word in state.split(",") for found in states_of(word.strip())})
        )
        before = id_of(after, "after") if after else LAST_ID
        limit = page_size(limit)
        page = await self._store.workflow_lists.list_workflows(
            namespace, before, wanted, text_of(name, "name"), limit=limit, scan=max(SCAN_MAX, limit + 1)
        )
        return answered(
            WorkflowPage([listed(item) for item in page.items], str(page.following) if page.following else None)
        )

    @requires(Permission.VIEW)
    async def get_workflow(self, reference: str, namespace: Within) -> Response:
        """Shows a workflow: its state, and each step with its latest run."""
        parent, run = await find_workflow(self._store, namespace, reference)
        return answered(await show_workflow(self._store, parent, run))

    @requires(Permission.OPERATE)
    async def cancel_workflow(self, reference: str, request: Request, namespace: Within) -> Response:
        """Cancels all steps except those that always run, such as teardown; with `force` those, too."""
        asked = await decoded(await read(request, self._config.body_max_bytes) or b"{}", cancel_decoder)
        parent, _ = await find_workflow(self._store, namespace, reference)
        why = asked.reason or "the workflow was cancelled"
        marked = await self._store.cancellation.mark_cancelled([parent.run_id], why, is_forced=asked.force)
        self._store.hints.send(worker_topic(worker_id) for worker_id in marked.values() if worker_id is not None)
        while await self._store.cancellation.end_cancelled():
            pass
        return await self.get_workflow(reference, namespace)

    @requires(Permission.SUBMIT)
    async def redrive(self, reference: str, request: Request, namespace: Within) -> Response:
        """Reruns the failed and cancelled steps, and the steps that depend on them. Other steps keep their results.
        With `dry_run`, shows which are which, with 200."""
        asked = await decoded(await read(request, self._config.body_max_bytes) or b"{}", redrive_decoder)
        parent, run = await find_workflow(self._store, namespace, reference)
        redrive = await self._submission.accept_redrive(namespace, reference, parent, run)
        if asked.dry_run:
            return answered(plan_of(redrive))
        note = NoteWithin(request, "redrive", store=self._store)

        async def work(within: Transaction) -> WorkflowShown:
            await self._submission.redrive_within(within, reference, redrive)
            # Read before the commit: a read after it could fail, and the caller would take that for a failed redrive.
            found = await find_workflow(self._store, namespace, reference, within)
            return await show_workflow(self._store, *found, is_new=True, within=within)

        made = await self._store.database.in_transaction("redrive", note.around(work))
        note.committed()
        self._submission.announce(len(redrive.steps))
        return answered(made, 201, where="/v1/workflows")

    async def _prepare(self, namespace: Namespace, asked: WorkflowRequest) -> Work:
        workflow = await self._submission.accept(namespace, asked)
        run = workflow.run

        async def work(within: Transaction) -> WorkflowCreated:
            await self._submission.store_within(within, workflow)
            return WorkflowCreated(
                run.id,
                run.name,
                "running",
                RunState.WAITING,
                WORKFLOW_TASK,
                bare(run.queue),
                run.priority,
                workflow.step_ids,
                created=True,
            )

        return work

    def _announce(self, made: msgspec.Struct) -> None:
        if isinstance(made, WorkflowCreated):
            self._submission.announce(len(made.steps))


def plan_of(redrive: Redrive) -> RedrivePlan:
    again = [
        StepAgain(planned.step.key, state, because(state))
        for planned in redrive.steps
        for state in [redrive.states.get(planned.step.key)]
    ]
    return RedrivePlan(again, [StepKept(key, state) for key, state in redrive.kept.items()])


def because(state: RunState | None) -> Literal["failed", "cancelled", "unknown", "after"]:
    if state is None:
        return "unknown"
    return "failed" if state is RunState.FAILED else "cancelled" if state is RunState.CANCELLED else "after"
