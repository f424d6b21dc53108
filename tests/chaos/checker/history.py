"""The recorded history of a cluster, stored in a directory as JSON lines, one file for each kind.

settings.json   the seed, the cluster's settings, and when the faults ended
journal.jsonl   the clients' requests and the answers, written by the clients
ledger.jsonl    the effects of jobs, written by the jobs, outside the database
changes.jsonl   every change of a run, in order, written by triggers in the same transaction
leases.jsonl    the same for workers and shards
records.jsonl   the same for the steps of durable functions
faults.jsonl    the faults, with their durations
memory.jsonl    the memory of each process, every few seconds
taken.jsonl     the share of the machine that its host and other processes took, every few seconds
runs.jsonl, jobs.jsonl, workflows.jsonl   the tables at the end

Instants are microseconds since 1970 by the database's clock. Instants of other clocks are converted: see `recorder.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

SECOND = 1_000_000
T = TypeVar("T", bound=msgspec.Struct)


class Settings(msgspec.Struct, kw_only=True):
    seed: int = 0
    worker_ttl_seconds: float = 15
    worker_margin_seconds: float = 2
    reaper_seconds: float = 2
    shard_ttl_seconds: float = 9
    lost_attempts_max: int = 3
    grace_seconds: float = 30
    output_max_bytes: int = 65_536
    retries: int = 3
    quiet_at: int
    """The instant after which there were no more faults and submissions."""
    ended_at: int
    """When the processes were told to stop. After that, the tables were read."""
    longest_seconds: float = 20
    """No attempt takes longer."""
    aging_seconds: float = 300
    lag_seconds: float = 30
    """The longest time that a run may be ready and unclaimed without a fault: throughput recovers within it."""
    has_broker: bool = False
    has_coordinator: bool = False
    """Whether nodes may take shards as soon as a session in etcd or ZooKeeper has ended."""


class Request(msgspec.Struct, array_like=True, gc=False):
    """A client's request. Repetitions count as one, with the final answer."""

    kind: Literal["job", "keyed", "workflow", "recurring", "cancel", "pause", "resume", "edit"]
    sent_at: int
    answered_at: int
    status: int
    """The HTTP status; 0: no answer came, and the outcome is unknown."""
    ids: list[str]
    """The ids that it made or named."""
    key: str = ""
    """The idempotency key; for a pause, the queue."""
    was_created: bool = True


class Effect(msgspec.Struct, array_like=True, gc=False):
    """An effect of a job on the world."""

    at: int
    kind: Literal["start", "work", "finish", "commit"]
    """commit: in the transaction that ended the run, so it is read from the database."""
    run_id: str
    token: int
    process: int


class Change(msgspec.Struct, array_like=True, gc=False):
    """One change of one run."""

    seq: int
    at: int
    began_at: int
    """When the transaction began."""
    transaction: int
    writer: str
    """The process that made it, by its login name. Empty where a pooler hides it."""
    kind: Literal["insert", "update", "delete", "finish"]
    """delete: out of the live runs; finish: into history."""
    run_id: str
    before: str
    after: str
    token: int
    attempt: int
    lost: int
    worker_id: str
    due_at: int
    is_cancelled: bool
    """A cancel was requested."""


class Lease(msgspec.Struct, array_like=True, gc=False):
    """A change of a worker's or a shard's lease."""

    seq: int
    at: int
    kind: Literal["worker", "shard"]
    id: str
    writer: str
    owner: str
    owner_before: str
    epoch: int
    expires_at: int
    expired_at: int
    """When the previous lease ended, or was to end."""


class Record(msgspec.Struct, array_like=True, gc=False):
    """A change of what is recorded of a durable function."""

    seq: int
    at: int
    kind: Literal["begin", "done", "change", "effect"]
    """begin: a wait; change: of what was recorded before; effect: of a transaction, in that transaction."""
    run_id: str
    name: str
    token: int
    lost: int


class Fault(msgspec.Struct, array_like=True):
    kind: str
    target: str
    process: int
    """0 if it was not a fault of one process."""
    since: int
    until: int
    """Includes the recovery: a lease, a search for dead workers, a process start."""
    detail: str = ""
    healed_at: int = 0


class Memory(msgspec.Struct, array_like=True, gc=False):
    """The memory of a process at an instant."""

    at: int
    target: str
    process: int
    bytes: int


class Taken(msgspec.Struct, array_like=True, gc=False):
    """How much of the machine was not ours for a while."""

    since: int
    until: int
    host: float
    """The share of the time that the host took, on the core that suffered most."""
    others: float
    """The share of all cores that other processes used."""

    @property
    def seconds(self) -> float:
        """The time that was lost."""
        return min(1.0, self.host + self.others) * (self.until - self.since) / SECOND


class Run(msgspec.Struct, array_like=True, gc=False):
    """A row of `runs` or `history`."""

    id: str
    is_live: bool
    state: str
    reason: str
    token: int
    attempt: int
    lost: int
    created_at: int
    due_at: int
    started_at: int
    """0: never."""
    finished_at: int
    """0: not yet."""
    task: str
    queue: str
    job_id: str = ""
    tick_at: int = 0
    parent_id: str = ""
    step: str = ""
    rerun_of: str = ""
    upstream: list[str] = []
    rule: str = ""
    guarantee: str = ""
    retries: int = 3
    timeout_seconds: float = 3600
    concurrency_key: str = ""
    concurrency_limit: int = 0
    output_bytes: int = 0
    has_ledger: bool = False
    """Its task writes the ledger."""
    payload: str | None = None
    """Only for runs of recurring jobs."""
    priority: int = 0


class JobVersion(msgspec.Struct, array_like=True):
    made_at: int
    schedule: str
    payload: str | None


class TickNote(msgspec.Struct, array_like=True):
    first_at: int
    last_at: int
    noted_at: int
    reason: str


class Job(msgspec.Struct, array_like=True):
    """A recurring job, all its versions, and the ticks that did not become runs."""

    id: str
    name: str
    shard: int
    overlap: str
    next_at: int
    versions: list[JobVersion]
    notes: list[TickNote]
    dependencies: list[str] = []
    """The ids of the jobs that it depends on."""
    is_fired: bool = False
    """It has no schedule: the success of its dependencies fires it."""


class WorkflowStep(msgspec.Struct, array_like=True):
    key: str
    after: list[str]
    rule: str
    outcome: str
    """The outcome if it runs."""


class Workflow(msgspec.Struct, array_like=True):
    """A workflow as requested."""

    id: str
    steps: list[WorkflowStep]
    fails_fast: bool = False


class History(msgspec.Struct, dict=True):
    """Everything about one run of a cluster."""

    settings: Settings
    journal: list[Request] = []
    ledger: list[Effect] = []
    changes: list[Change] = []
    leases: list[Lease] = []
    faults: list[Fault] = []
    runs: list[Run] = []
    jobs: list[Job] = []
    workflows: list[Workflow] = []
    memory: list[Memory] = []
    records: list[Record] = []
    taken: list[Taken] = []

    @cached_property
    def by_id(self) -> dict[str, Run]:
        return {run.id: run for run in self.runs}

    @cached_property
    def runs_of_parent(self) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = {}
        for run in self.runs:
            if run.parent_id:
                found.setdefault(run.parent_id, []).append(run)
        return found

    @cached_property
    def changes_of(self) -> dict[str, list[Change]]:
        """The changes of one run, in order; its end follows its removal from the live runs."""
        found: dict[str, list[Change]] = {}
        for change in self.changes:
            found.setdefault(change.run_id, []).append(change)
        for changes in found.values():
            changes.sort(key=_order)
            for place in range(len(changes) - 1):
                first, second = changes[place], changes[place + 1]
                if first.kind == "finish" and second.kind == "delete" and first.transaction == second.transaction:
                    changes[place : place + 2] = second, first
        return found

    @cached_property
    def effects_of(self) -> dict[str, list[Effect]]:
        found: dict[str, list[Effect]] = {}
        for effect in self.ledger:
            found.setdefault(effect.run_id, []).append(effect)
        return found

    @cached_property
    def records_of(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        for record in self.records:
            found.setdefault(record.run_id, []).append(record)
        return found

    def disturbed_seconds(self, since: int, until: int, by: str | tuple[str, ...] = "") -> float:
        """How much of a span was disturbed by faults. Two at once count twice: what they do adds up. `by`: how their
        targets begin."""
        overlaps = (
            min(until, fault.until) - max(since, fault.since) for fault in self.faults if fault.target.startswith(by)
        )
        return sum(max(0, overlap) for overlap in overlaps) / SECOND

    def taken_seconds(self, since: int, until: int) -> float:
        """How much of a span the host and other processes took from us."""
        return sum(
            one.seconds * overlap / (one.until - one.since)
            for one in self.taken
            if (overlap := min(until, one.until) - max(since, one.since)) > 0
        )

    def slowed_seconds(self, since: int, until: int, by: str | tuple[str, ...] = "") -> float:
        """How much longer than usual something may take: the disturbance by faults and by the machine."""
        return self.disturbed_seconds(since, until, by) + self.taken_seconds(since, until)

    def broken_seconds(self, since: int, until: int) -> float:
        """How much of a span had at least one fault, without the recovery."""
        covered, reached = 0, since
        for begun_at, healed_at in sorted((fault.since, fault.healed_at) for fault in self.faults if fault.healed_at):
            covered += max(0, min(healed_at, until) - max(begun_at, reached))
            reached = max(reached, min(healed_at, until))
        return covered / SECOND


def _order(change: Change) -> int:
    return change.seq


FILES: dict[str, type[msgspec.Struct]] = {
    "journal": Request,
    "ledger": Effect,
    "changes": Change,
    "leases": Lease,
    "faults": Fault,
    "runs": Run,
    "jobs": Job,
    "workflows": Workflow,
    "memory": Memory,
    "records": Record,
    "taken": Taken,
}


def save(history: History, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "settings.json").write_bytes(msgspec.json.encode(history.settings))
    for name in FILES:
        write_lines(directory / f"{name}.jsonl", getattr(history, name))


def load(directory: Path) -> History:
    settings = msgspec.json.decode((directory / "settings.json").read_bytes(), type=Settings)
    found: dict[str, list[Any]] = {
        name: list(read_lines(directory / f"{name}.jsonl", kind)) for name, kind in FILES.items()
    }
    return History(settings, **found)


def write_lines(path: Path, records: Iterable[msgspec.Struct]) -> None:
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        file.writelines(encoder.encode(record) + b"\n" for record in records)


def read_lines(path: Path, kind: type[T]) -> Iterator[T]:
    decoder = msgspec.json.Decoder(kind)
    if path.exists():
        with path.open("rb") as file:
            for line in file:
                yield decoder.decode(line)
