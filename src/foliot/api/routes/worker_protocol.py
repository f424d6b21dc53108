"""`/v1/worker/`: workers without database access register, claim runs, renew their leases and store outcomes.

docs/worker-protocol.md describes these requests. Each is fenced by the worker, and by run and token where it is about
an attempt; each may be sent again after a lost answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.remote_workers.holders import token_of
from foliot.api.remote_workers.requests import WorkerRequests, caller_in
from foliot.api.security.permissions import PermissionRoute, namespace_of_caller, requires
from foliot.errors import Conflict, Invalid, UnknownWorker
from foliot.events import RunsClaimed
from foliot.model.histogram import histogram_of
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.model.run import Claim
from foliot.model.worker_protocol import (
    CLAIMED_MAX,
    WAIT_MAX_SECONDS,
    AboutAttempt,
    BeatWorker,
    ClaimedRun,
    ClaimedRuns,
    ClaimRuns,
    CountOutcomes,
    EndAttempt,
    FromWorker,
    OutcomesCounted,
    RegisterWorker,
    StoreOutcomes,
    TaskOffer,
    WaitForWork,
    WorkerBeat,
    WorkerRegistered,
    WorkerSettings,
    WriteLogs,
    raw,
)
from foliot.store.announcements import TaskVersion, announcement_of
from foliot.store.hints import ALL_QUEUES_TOPIC, GATES_TOPIC
from foliot.store.logs import LogPart, ProgressNote
from foliot.store.workers import Beat, RemoteBeat
from foliot.submission.declared_jobs import DeclaredJob, declare_jobs

register_decoder = msgspec.json.Decoder(RegisterWorker)
claim_decoder = msgspec.json.Decoder(ClaimRuns)
wait_decoder = msgspec.json.Decoder(WaitForWork)
beat_decoder = msgspec.json.Decoder(BeatWorker)
outcomes_decoder = msgspec.json.Decoder(StoreOutcomes)
logs_decoder = msgspec.json.Decoder(WriteLogs)
count_decoder = msgspec.json.Decoder(CountOutcomes)
leave_decoder = msgspec.json.Decoder(FromWorker)
LIMITED_SECONDS = 3.0
"""How long the list of queues with a limit is used."""


class WorkerProtocolRoutes:
    def __init__(self, requests: WorkerRequests) -> None:
        self._requests = requests
        self._store, self._config, self._clock = requests.store, requests.config, requests.clock
        self._limited: tuple[float, frozenset[str]] = (float("-inf"), frozenset())
        # A protocol between programs, with a page and a contract of its own.
        self.router = APIRouter(tags=["workers"], route_class=PermissionRoute, include_in_schema=False)
        self.router.add_api_route("/v1/worker/settings", self.worker_settings, methods=["GET"])
        for path, handler in {
            "register": self.register_worker,
            "claim": self.claim_runs,
            "wait": self.wait_for_work,
            "beat": self.beat_worker,
            "outcomes": self.store_outcomes,
            "logs": self.write_logs,
            "circuits": self.count_outcomes,
            "leave": self.leave,
        }.items():
            self.router.add_api_route(f"/v1/worker/{path}", handler, methods=["POST"])

    @requires(Permission.WORK)
    async def worker_settings(self, request: Request) -> Response:
        """Shows the settings that a worker needs before it registers."""
        config = self._config
        return json_response(
            WorkerSettings(
                namespace=namespace_of_caller(request).name,
                lease_seconds=config.worker_ttl_seconds,
                beat_seconds=config.worker_beat_seconds,
                wait_seconds=WAIT_MAX_SECONDS,
                retries=config.retries,
                timeout_seconds=config.timeout_seconds,
                result_max_bytes=config.result_max_bytes,
                output_max_bytes=config.output_max_bytes,
                body_max_bytes=config.batch_max_bytes,
            )
        )

    @requires(Permission.WORK)
    async def register_worker(self, request: Request) -> Response:
        """Registers a worker and announces its tasks."""
        asked, namespace = await self._requests.message(request, register_decoder)
        versions = {
            namespace.qualified(name): TaskVersion(offer.schema, offer.description)
            for name, offer in asked.tasks.items()
        }
        said, text = announcement_of(versions)
        caller, workers = caller_in(request), self._store.workers
        await self._store.announcements.put_announcement(said, text)
        await workers.announce_tasks(
            {namespace.qualified(name): namespace.qualified(offer.queue) for name, offer in asked.tasks.items()},
            {namespace.qualified(name): offer.guarantee for name, offer in asked.tasks.items()},
            {namespace.qualified(name): offer.tags for name, offer in asked.tasks.items() if offer.tags},
            said,
        )
        jobs = declared_jobs(asked.tasks)
        await declare_jobs(jobs, store=self._store, events=self._store.events, namespace=namespace)
        asked_at = self._clock.monotonic()
        await workers.register_worker(
            asked.worker_id,
            asked.name,
            {namespace.qualified(queue): slots for queue, slots in asked.queues.items()},
            sorted(versions),
            asked.labels,
            said,
            token_of(caller),
        )
        try:
            await self._requests.holders.check(asked.worker_id, caller)
        except UnknownWorker:
            raise Conflict(f"worker_id: {asked.worker_id} is taken; choose a new random id") from None
        self._requests.leases.registered(asked.worker_id, asked_at)
        return json_response(WorkerRegistered(asked.worker_id, self._config.worker_ttl_seconds), 201)

    @requires(Permission.WORK)
    async def claim_runs(self, request: Request) -> Response:
        """Claims ready runs, or returns the runs that the worker owns without knowing."""
        asked, namespace = await self._requests.from_worker(request, claim_decoder)
        self._requests.waiting_room.claiming(asked.worker_id)
        lease_seconds = None
        if asked.is_idle:
            lease_seconds = await self._requests.leases.begin(asked.worker_id)
            if lease_seconds is None:
                raise UnknownWorker(f"there is no worker {asked.worker_id} any more; register again under a new id")
        if asked.held is not None:
            claims = await self._store.claims.recover_claims(asked.worker_id, asked.held)
        else:
            claims = await self._claim(asked, namespace)
            if claims:
                self._requests.waiting_room.claimed({claim.queue for claim in claims})
                self._store.events.emit(
                    RunsClaimed(len(claims), histogram_of(claim.waited_seconds for claim in claims))
                )
        return json_response(ClaimedRuns([claimed(claim) for claim in claims], lease_seconds))

    async def _claim(self, asked: ClaimRuns, namespace: Namespace) -> list[Claim]:
        tasks = [namespace.qualified(task) for task in asked.tasks]
        limited, slots, left = await self._limited_queues(), {}, CLAIMED_MAX
        for queue, free in asked.slots.items():
            slots[namespace.qualified(queue)] = taken = min(free, left)
            left -= taken
        slots = {queue: free for queue, free in slots.items() if free}
        if not slots or not tasks:
            return []
        claims = await self._store.claims.claim_runs(asked.worker_id, slots, tasks, asked.declined)
        for queue in limited & slots.keys():
            claims += await self._store.claims.claim_limited_runs(
                asked.worker_id, queue, slots[queue], tasks, asked.declined
            )
        return claims

    async def _limited_queues(self) -> frozenset[str]:
        """One reader at a time; the others use the last list meanwhile."""
        now = self._clock.monotonic()
        if now - self._limited[0] > LIMITED_SECONDS:
            self._limited = (now, self._limited[1])
            self._limited = (now, await self._store.workers.limited_queues())
        return self._limited[1]

    @requires(Permission.WORK)
    async def wait_for_work(self, request: Request) -> Response:
        """Waits until there may be something to claim, or a reason for a heartbeat."""
        asked, namespace = await self._requests.from_worker(request, wait_decoder)
        queues = [namespace.qualified(queue) for queue, free in asked.slots.items() if free]
        tasks = [namespace.qualified(task) for task in asked.tasks]
        return json_response(
            await self._requests.waiting_room.wait(
                asked.worker_id, queues, tasks, asked.seconds, is_complete=len(queues) == len(asked.slots)
            )
        )

    @requires(Permission.WORK)
    async def beat_worker(self, request: Request) -> Response:
        """Renews the lease, and returns the attempts that must end."""
        try:
            asked, _ = await self._requests.from_worker(request, beat_decoder)
        except UnknownWorker:
            return json_response(WorkerBeat(False))
        lease = self._requests.leases.ttl_seconds
        beat = await self._requests.leases.beat(
            RemoteBeat(asked.worker_id, lease, asked.held, asked.left_running), is_idle=asked.is_idle
        )
        return json_response(WorkerBeat(False) if beat is None else beaten(beat))

    @requires(Permission.WORK)
    async def store_outcomes(self, request: Request) -> Response:
        """Stores how attempts ended, and decides about retries where the worker has not."""
        asked, _ = await self._requests.from_worker(request, outcomes_decoder)
        writer = self._requests.writer
        outcomes = [writer.outcome_of(one) for one in asked.outcomes] + [writer.decided(one) for one in asked.ended]
        if len({(one.run_id, one.token) for one in outcomes}) < len(outcomes):
            raise Invalid("outcomes: an attempt ends once, but one is listed twice", field="outcomes")
        stored = await writer.write(asked.worker_id, outcomes)
        hints = [ALL_QUEUES_TOPIC] if asked.concerns_others else []
        self._store.hints.send([*hints, GATES_TOPIC] if asked.frees_limit else hints)
        return json_response(stored)

    @requires(Permission.WORK)
    async def write_logs(self, request: Request) -> Response:
        """Stores output and progress of running attempts."""
        asked, _ = await self._requests.from_worker(request, logs_decoder)
        given: list[AboutAttempt] = [*asked.parts, *asked.progress]
        attempts = {(one.run_id, one.token) for one in given}
        held = await self._store.claims.held_runs(asked.worker_id, list(attempts)) if attempts else set()
        parts = [
            LogPart(one.run_id, one.token, one.position, one.chunk)
            for one in asked.parts
            if (one.run_id, one.token) in held
        ]
        notes = [
            ProgressNote(
                one.run_id,
                one.token,
                msgspec.json.encode({"share": one.share, "message": one.message, "attempt": one.attempt}).decode(),
            )
            for one in asked.progress
            if (one.run_id, one.token) in held
        ]
        if parts or notes:
            await self._store.logs.write_logs(asked.worker_id, parts, notes)
        if asked.ended:
            # Changes nothing that anybody reads: only parts whose whole output is stored are deleted.
            await self._store.logs.delete_logs(asked.ended)
        return json_response({})

    @requires(Permission.WORK)
    async def count_outcomes(self, request: Request) -> Response:
        """Counts failures and successes of tasks with a circuit breaker."""
        asked, namespace = await self._requests.from_worker(request, count_decoder)
        breaker, closed, is_open = self._store.circuit_breaker, list[str](), dict[str, bool]()
        if asked.succeeded:
            tasks = [namespace.qualified(task) for task in asked.succeeded]
            closed = await breaker.record_successes(tasks, asked.run_ids)
        failures = {
            namespace.qualified(task): number for task, number in asked.failures.items() if task in asked.circuits
        }
        if failures:
            circuits = {namespace.qualified(task): circuit for task, circuit in asked.circuits.items()}
            is_open = await breaker.record_failures(failures, circuits)
        return json_response(
            OutcomesCounted([bare(task) for task in closed], {bare(task): one for task, one in is_open.items()})
        )

    @requires(Permission.WORK)
    async def leave(self, request: Request) -> Response:
        """Removes a worker that stops. Its attempts have ended."""
        asked, _ = await self._requests.from_worker(request, leave_decoder)
        await self._store.workers.remove_worker(asked.worker_id)
        return json_response({})


def declared_jobs(tasks: Mapping[str, TaskOffer]) -> list[DeclaredJob]:
    return [
        DeclaredJob(name, offer.queue, offer.schedule, tuple(offer.tags or ()))
        for name, offer in tasks.items()
        if offer.schedule is not None
    ]


def claimed(claim: Claim) -> ClaimedRun:
    return ClaimedRun(
        claim.run_id,
        claim.token,
        bare(claim.queue),
        bare(claim.task),
        claim.attempt,
        claim.lost,
        raw(claim.payload),
        raw(claim.options),
        claim.waited_seconds,
        claim.has_upstream,
        claim.concerns_others,
        claim.is_disabled,
    )


def beaten(beat: Beat) -> WorkerBeat:
    return WorkerBeat(beat.is_renewed, list(ends(beat)), beat.is_draining, beat.owns_unheld)


def ends(beat: Beat) -> Iterable[EndAttempt]:
    for (run_id, token), cancel in beat.to_end.items():
        if cancel is None:
            yield EndAttempt(run_id, token, is_lost=True)
        else:
            yield EndAttempt(run_id, token, False, cancel.reason, cancel.message, cancel.is_forced)
