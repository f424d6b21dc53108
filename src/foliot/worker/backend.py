"""The interface between a worker and the rest of Foliot.

`direct.py` answers from the database. `remote/` asks an API server, for workers without database access. The parts of a
worker do not know the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from foliot.events import EventBus
from foliot.model.checkpoint import Checkpoint
from foliot.model.circuit_breaker import Circuit
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.model.outcome import Outcome
from foliot.model.run import Claim
from foliot.sdk.app import App
from foliot.service import Service
from foliot.store.checkpoints import NewCheckpoint
from foliot.store.logs import LogPart, ProgressNote
from foliot.store.store import Store
from foliot.store.upstream_results import Before
from foliot.store.workers import Beat
from foliot.submission.child_runs import Expanded, Expanding
from foliot.worker.announcement import OwnAnnouncement
from foliot.worker.holdings import Holdings

Key = tuple[UUID, int]


class Claims(Protocol):
    async def claim_runs(
        self, worker_id: UUID, slots: Mapping[str, int], tasks: Sequence[str], declined: Sequence[UUID] = ()
    ) -> list[Claim]: ...

    async def claim_limited_runs(
        self, worker_id: UUID, queue: str, slots: int, tasks: Sequence[str], declined: Sequence[UUID] = ()
    ) -> list[Claim]: ...

    async def claim_runs_by_id(
        self,
        worker_id: UUID,
        run_ids: Sequence[UUID],
        slots: Mapping[str, int],
        tasks: Sequence[str],
        declined: Sequence[UUID] = (),
    ) -> list[Claim]: ...

    async def recover_claims(self, worker_id: UUID, held: Sequence[Key]) -> list[Claim]: ...


class Outcomes(Protocol):
    async def finish_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int: ...

    async def retry_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int: ...

    async def release_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int: ...

    async def count_written(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int: ...

    async def note_refused(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> None: ...


class Checkpoints(Protocol):
    async def open_checkpoints(self, run_id: UUID, token: int, worker_id: UUID) -> list[Checkpoint] | None: ...

    async def record_checkpoints(
        self, worker_id: UUID, given: Sequence[NewCheckpoint]
    ) -> list[tuple[bool, datetime | None]]: ...

    async def await_signal(
        self, run_id: UUID, token: int, worker_id: UUID, name: str, timeout_seconds: float | None
    ) -> Checkpoint | None: ...

    async def note_unused(self, run_id: UUID, token: int, worker_id: UUID, names: Sequence[str]) -> None: ...

    async def suspend_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int: ...


class Logs(Protocol):
    async def write_logs(self, worker_id: UUID, parts: Sequence[LogPart], notes: Sequence[ProgressNote]) -> None: ...

    async def delete_logs(self, attempts: Sequence[Key]) -> int: ...


class UpstreamResults(Protocol):
    async def read_upstream(self, run_ids: Sequence[UUID], max_bytes: int) -> dict[UUID, Before]: ...


class CircuitBreaker(Protocol):
    async def record_failures(
        self, failures: Mapping[str, int], circuits: Mapping[str, Circuit]
    ) -> dict[str, bool]: ...

    async def record_successes(self, tasks: Sequence[str], run_ids: Sequence[UUID]) -> list[str]: ...


class Hints(Protocol):
    def send(self, topics: Iterable[str]) -> None: ...


class WorkerStore(Protocol):
    """The part of the store that workers use. `Store` has it."""

    @property
    def claims(self) -> Claims: ...
    @property
    def outcomes(self) -> Outcomes: ...
    @property
    def checkpoints(self) -> Checkpoints: ...
    @property
    def logs(self) -> Logs: ...
    @property
    def upstream_results(self) -> UpstreamResults: ...
    @property
    def circuit_breaker(self) -> CircuitBreaker: ...
    @property
    def hints(self) -> Hints: ...


class ChildRuns(Protocol):
    async def expand_workflow(
        self, namespace: Namespace, worker_id: UUID, attempt: Expanding, payload: Mapping[str, Any]
    ) -> Expanded: ...

    async def expand_map(
        self, namespace: Namespace, worker_id: UUID, attempt: Expanding, payload: Mapping[str, Any]
    ) -> Expanded: ...


class Calls(Protocol):
    async def call(
        self, namespace: Namespace, worker_id: UUID, run_id: UUID, token: int, name: str, job: JobRequest
    ) -> UUID | None: ...

    async def takes_elsewhere(
        self, namespace: Namespace, task: str, schema: Mapping[str, Any] | None, payload: Mapping[str, Any]
    ) -> bool: ...


class Beats(Protocol):
    """Used in the thread of the heartbeat."""

    async def beat(self, worker_id: UUID, held: Sequence[Key], left_running: int = 0) -> Beat: ...


class Registration(Protocol):
    async def announce(self, app: App, queue_of_task: Mapping[str, str], said: OwnAnnouncement) -> None:
        """Makes the tasks known, and creates the jobs that they declare."""

    async def register(
        self, worker_id: UUID, name: str, slots: Mapping[str, int], labels: Mapping[str, str]
    ) -> None: ...

    async def leave(self, worker_id: UUID) -> None: ...


class Backend(Protocol):
    @property
    def store(self) -> WorkerStore: ...
    @property
    def database(self) -> Store | None:
        """The database itself, for transactions of tasks. None: this worker has no access to it."""

    @property
    def child_runs(self) -> ChildRuns: ...
    @property
    def calls(self) -> Calls: ...
    @property
    def registration(self) -> Registration: ...
    @property
    def hearing_polls(self) -> float:
        """A claimer that receives hints waits this many times longer between polls."""

    def listener(self, on_hint: Callable[[str], None]) -> Service | None: ...

    def is_listening(self) -> bool: ...

    def open_beats(self, events: EventBus) -> AbstractAsyncContextManager[Beats]: ...

    def attach(
        self,
        holdings: Holdings,
        begin_lease: Callable[[float], None],
        free_slots: Callable[[], Mapping[str, int]],
    ) -> None:
        """Called once, before the worker starts. `begin_lease` takes the monotonic time of the request that began a
        lease."""
