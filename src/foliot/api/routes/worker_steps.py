"""`/v1/worker/`: what the attempts of workers without database access ask for while they run: earlier results,
checkpoints, and runs of their own."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.remote_workers.requests import WorkerRequests
from foliot.api.security.permissions import PermissionRoute, requires
from foliot.model.checkpoint import Checkpoint
from foliot.model.job_request import JobRequest
from foliot.model.roles import Permission
from foliot.model.worker_protocol import (
    AwaitSignal,
    CallRun,
    CheckPayload,
    CheckpointRecorded,
    CheckpointShown,
    CheckpointsRead,
    CheckpointsRecorded,
    ExpandRun,
    NoteUnused,
    OfAttempt,
    PayloadTaken,
    ReadUpstream,
    RecordCheckpoints,
    RunCalled,
    RunExpanded,
    RunsBefore,
    UpstreamRead,
    UpstreamResult,
    raw,
    text_of,
)
from foliot.store.checkpoints import NewCheckpoint
from foliot.store.upstream_results import UPSTREAM_MAX_BYTES, Before
from foliot.submission.calls import Calls
from foliot.submission.child_runs import ChildRuns, Expanding
from foliot.validation_errors import to_invalid

upstream_decoder = msgspec.json.Decoder(ReadUpstream)
open_decoder = msgspec.json.Decoder(OfAttempt)
record_decoder = msgspec.json.Decoder(RecordCheckpoints)
signal_decoder = msgspec.json.Decoder(AwaitSignal)
call_decoder = msgspec.json.Decoder(CallRun)
unused_decoder = msgspec.json.Decoder(NoteUnused)
expand_decoder = msgspec.json.Decoder(ExpandRun)
payload_decoder = msgspec.json.Decoder(CheckPayload)


class WorkerStepRoutes:
    def __init__(self, requests: WorkerRequests) -> None:
        self._requests = requests
        self._store = store = requests.store
        self._calls = Calls(store=store, clock=requests.clock)
        self._child_runs = ChildRuns(store, aging_seconds=requests.config.aging_seconds)
        self.router = APIRouter(tags=["workers"], route_class=PermissionRoute, include_in_schema=False)
        for path, handler in {
            "upstream": self.read_upstream,
            "checkpoints/open": self.open_checkpoints,
            "checkpoints/record": self.record_checkpoints,
            "checkpoints/signal": self.await_signal,
            "checkpoints/call": self.call_run,
            "checkpoints/unused": self.note_unused,
            "expand": self.expand_run,
            "payload": self.check_payload,
        }.items():
            self.router.add_api_route(f"/v1/worker/{path}", handler, methods=["POST"])

    @requires(Permission.WORK)
    async def read_upstream(self, request: Request) -> Response:
        """Returns the results of the steps before a run, and the signal that released it."""
        asked, _ = await self._requests.from_worker(request, upstream_decoder)
        held = await self._store.claims.held_runs(asked.worker_id, asked.attempts) if asked.attempts else set()
        run_ids = [run_id for run_id, _ in held]
        found = await self._store.upstream_results.read_upstream(run_ids, UPSTREAM_MAX_BYTES) if run_ids else {}
        runs = [
            RunsBefore(
                run_id,
                [UpstreamResult(one.key, one.state, raw(one.result)) for one in before.upstream],
                raw(before.signal),
                before.bytes,
            )
            for run_id in run_ids
            for before in [found.get(run_id, Before())]
        ]
        return json_response(UpstreamRead(runs))

    @requires(Permission.WORK)
    async def open_checkpoints(self, request: Request) -> Response:
        """Returns everything that a durable function has recorded."""
        asked, _ = await self._requests.from_worker(request, open_decoder)
        found = await self._store.checkpoints.open_checkpoints(asked.run_id, asked.token, asked.worker_id)
        shown = [] if found is None else [checkpoint_shown(one) for one in found]
        return json_response(CheckpointsRead(found is not None, shown))

    @requires(Permission.WORK)
    async def record_checkpoints(self, request: Request) -> Response:
        """Records steps that have returned, and sleeps that begin."""
        asked, _ = await self._requests.from_worker(request, record_decoder)
        records = [
            NewCheckpoint(
                one.run_id,
                one.token,
                one.name,
                one.kind,
                one.function,
                text_of(one.result),
                one.took_seconds,
                one.wait_seconds,
            )
            for one in asked.records
        ]
        answers = await self._store.checkpoints.record_checkpoints(asked.worker_id, records) if records else []
        return json_response(CheckpointsRecorded([CheckpointRecorded(*answer) for answer in answers]))

    @requires(Permission.WORK)
    async def await_signal(self, request: Request) -> Response:
        """Begins to wait for a signal, or returns the one that has come."""
        asked, _ = await self._requests.from_worker(request, signal_decoder)
        found = await self._store.checkpoints.await_signal(
            asked.run_id, asked.token, asked.worker_id, asked.name, asked.timeout_seconds
        )
        return json_response(CheckpointsRead(found is not None, [] if found is None else [checkpoint_shown(found)]))

    @requires(Permission.WORK)
    async def call_run(self, request: Request) -> Response:
        """Creates the run that a durable function calls, once."""
        asked, namespace = await self._requests.from_worker(request, call_decoder)
        try:
            job = msgspec.json.decode(msgspec.json.encode(asked.job), type=JobRequest)
        except msgspec.ValidationError as error:
            raise to_invalid(error, whole="job") from None
        child_id = await self._calls.call(namespace, asked.worker_id, asked.run_id, asked.token, asked.name, job)
        return json_response(RunCalled(child_id is not None, child_id))

    @requires(Permission.WORK)
    async def note_unused(self, request: Request) -> Response:
        """Marks records that the function no longer uses."""
        asked, _ = await self._requests.from_worker(request, unused_decoder)
        await self._store.checkpoints.note_unused(asked.run_id, asked.token, asked.worker_id, asked.names)
        return json_response({})

    @requires(Permission.WORK)
    async def expand_run(self, request: Request) -> Response:
        """Turns the run of an attempt into a workflow or a map."""
        asked, namespace = await self._requests.from_worker(request, expand_decoder)
        attempt = Expanding(asked.run_id, asked.token, asked.tick, asked.traceparent, asked.upstream)
        expand = self._child_runs.expand_map if asked.kind == "map" else self._child_runs.expand_workflow
        outcome = await expand(namespace, asked.worker_id, attempt, asked.payload)
        return json_response(RunExpanded(outcome.value))

    @requires(Permission.WORK)
    async def check_payload(self, request: Request) -> Response:
        """Whether another version of a task takes a payload."""
        asked, namespace = await self._requests.from_worker(request, payload_decoder)
        taken = await self._calls.takes_elsewhere(namespace, asked.task, asked.schema, asked.payload)
        return json_response(PayloadTaken(taken))


def checkpoint_shown(one: Checkpoint) -> CheckpointShown:
    error = None if one.error is None else msgspec.structs.asdict(one.error)
    return CheckpointShown(
        one.name,
        one.kind,
        one.function,
        one.is_done,
        raw(one.result),
        error,
        one.due_at,
        one.left_seconds,
        one.child_id,
    )
