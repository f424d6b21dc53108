"""Makes correct histories of any size: the checker must pass them, and mutants start from them.

The runs are spread over ten minutes, whatever their number. Two workers and two scheduler nodes live through it; a
third worker dies in the middle, and so does a node.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.ids import shard_of, tick_run_id
from foliot.model.schedule import Schedule
from tests.chaos.checker.history import (
    SECOND,
    Change,
    Effect,
    Fault,
    History,
    Job,
    JobVersion,
    Lease,
    Memory,
    Record,
    Request,
    Run,
    Settings,
    TickNote,
    Workflow,
    WorkflowStep,
)

START = 1_800_000_000 * SECOND
LENGTH = 600 * SECOND
MOMENT = SECOND // 100
DIES_AT = START + 300 * SECOND
TTL = 15 * SECOND
BACK_AT = START + 450 * SECOND
"""PostgreSQL, after a crash."""
WORKERS = {"w1": "node_1", "w2": "node_2"}
"""The names with which they log in."""
DYING = ("w3", "node_3")
NODES = {"s1": "node_4", "s2": "node_5"}


@dataclass(slots=True)
class Live:
    """A run and its progress."""

    row: Run
    worker: str = ""
    writer: str = "node_9"
    is_cancelled: bool = False


@dataclass
class Maker:
    chance: random.Random
    history: History = field(
        default_factory=lambda: History(
            Settings(quiet_at=START + LENGTH, ended_at=START + LENGTH + 70 * SECOND, lost_attempts_max=3)
        )
    )
    transactions: int = 0

    def new_id(self) -> str:
        return str(UUID(int=self.chance.getrandbits(128)))

    def instant(self) -> int:
        """Instants at which a short life may begin: it ends before the end, and avoids the minute in which a worker
        dies."""
        return START + self.chance.randrange(SECOND, 270 * SECOND) + self.chance.choice((0, 320 * SECOND))

    def change(self, live: Live, kind: str, at: int, after: str, transaction: int | None = None) -> None:
        row = live.row
        if transaction is None:
            self.transactions += 1
            transaction = self.transactions
        self.history.changes.append(
            Change(
                seq=0,
                at=at,
                began_at=at - 500,
                transaction=transaction,
                writer=live.writer,
                kind=kind,  # type: ignore[arg-type]
                run_id=row.id,
                before="" if kind in ("insert", "finish") else row.state,
                after=after,
                token=row.token,
                attempt=row.attempt,
                lost=row.lost,
                worker_id=live.worker,
                due_at=row.due_at,
                is_cancelled=live.is_cancelled,
            )
        )
        row.state = after or row.state

    def begin(
        self, at: int, state: str = "ready", *, acknowledged: bool = True, due_at: int = 0, **fields: Any
    ) -> Live:
        row = {"id": self.new_id(), "task": "effect", "queue": "default", "has_ledger": True, **fields}
        row |= {
            "is_live": True,
            "state": "",
            "reason": "",
            "token": 0,
            "attempt": 0,
            "lost": 0,
            "started_at": 0,
            "finished_at": 0,
        }
        live = Live(Run(created_at=at, due_at=due_at or at, **row))
        self.history.runs.append(live.row)
        self.change(live, "insert", at, state)
        if acknowledged:
            self.history.journal.append(Request("job", at - MOMENT, at + MOMENT, 201, [live.row.id]))
        return live

    def claim(self, live: Live, at: int, worker: str = "") -> None:
        worker = worker or self.chance.choice(list(WORKERS))
        live.worker, live.writer = worker, WORKERS.get(worker, DYING[1])
        live.row.token += 1
        live.row.attempt += 1
        live.row.started_at = at
        self.change(live, "update", at, "running")
        self.effect(live, at + MOMENT, "start")

    def effect(self, live: Live, at: int, kind: str) -> None:
        if live.row.has_ledger:
            process = int(live.writer.removeprefix("node_"))
            self.history.ledger.append(Effect(at, kind, live.row.id, live.row.token, process))  # type: ignore[arg-type]

    def leave(self, live: Live, at: int, state: str, *, due_at: int = 0, writer: str = "") -> None:
        """Ends an attempt and continues."""
        live.row.due_at = due_at or live.row.due_at
        live.worker, live.writer = "", writer or live.writer
        self.change(live, "update", at, state)

    def finish(self, live: Live, at: int, state: str = "succeeded", reason: str = "", *, writer: str = "") -> None:
        if state == "succeeded" and live.row.state == "running":
            self.effect(live, at - MOMENT, "finish")
        live.writer = writer or live.writer
        self.change(live, "delete", at, "")
        live.row.state, live.row.reason, live.row.finished_at, live.row.is_live = state, reason, at, False
        self.change(live, "finish", at, state, self.transactions)

    def plain(self) -> Live:
        at = self.instant()
        live = self.begin(at)
        self.claim(live, at + MOMENT * 2)
        self.finish(live, at + MOMENT * 6)
        return live

    def delayed(self) -> None:
        at = self.instant()
        live = self.begin(at, "scheduled", due_at=at + 2 * SECOND)
        self.change(live, "update", at + 2 * SECOND + MOMENT, "ready")
        self.claim(live, at + 2 * SECOND + 2 * MOMENT)
        self.finish(live, at + 3 * SECOND)

    def retried(self) -> None:
        at = self.instant()
        live = self.begin(at)
        self.claim(live, at + MOMENT)
        self.leave(live, at + SECOND, "scheduled", due_at=at + 3 * SECOND)
        self.change(live, "update", at + 3 * SECOND + MOMENT, "ready")
        self.claim(live, at + 4 * SECOND)
        self.finish(live, at + 5 * SECOND)

    def released(self) -> None:
        at = self.instant()
        live = self.begin(at)
        self.claim(live, at + MOMENT)
        live.row.attempt -= 1
        self.leave(live, at + SECOND, "ready")
        self.claim(live, at + 2 * SECOND)
        self.finish(live, at + 3 * SECOND)

    def lost(self) -> None:
        """Claimed by the worker that dies, and taken from it a second after its lease has expired."""
        at = DIES_AT - self.chance.randrange(1, 4) * SECOND + self.chance.randrange(MOMENT)
        live = self.begin(at)
        self.claim(live, at + MOMENT, DYING[0])
        live.row.lost += 1
        self.leave(live, DIES_AT + TTL + SECOND + self.chance.randrange(MOMENT), "ready", writer="node_5")
        self.claim(live, DIES_AT + TTL + 2 * SECOND)
        self.finish(live, DIES_AT + TTL + 3 * SECOND)

    def once_only(self) -> None:
        at = self.instant()
        live = self.begin(at, guarantee="at_most_once")
        self.claim(live, at + MOMENT)
        self.finish(live, at + SECOND)

    def transactional(self) -> None:
        at = self.instant()
        live = self.begin(at, guarantee="transactional")
        self.claim(live, at + MOMENT)
        self.finish(live, at + SECOND)
        self.effect(live, at + SECOND, "commit")

    def buried(self) -> None:
        """At most once, and its worker died."""
        at = DIES_AT - SECOND
        live = self.begin(at, guarantee="at_most_once")
        self.claim(live, at + MOMENT, DYING[0])
        live.row.lost += 1
        self.finish(live, DIES_AT + TTL + SECOND, "failed", "lost", writer="node_5")

    def durable(self) -> None:
        """Sleeps once, which is not an attempt, and fails once between two steps."""
        at = self.instant()
        live = self.begin(at, task="durable")
        self.claim(live, at + MOMENT)
        self.record(live, at + 2 * MOMENT, "done", "first")
        self.record(live, at + 3 * MOMENT, "effect", "paid")
        self.record(live, at + 3 * MOMENT, "done", "paid")
        self.record(live, at + 4 * MOMENT, "begin", "nap")
        live.row.attempt -= 1
        self.leave(live, at + 5 * MOMENT, "scheduled", due_at=at + SECOND)
        self.change(live, "update", at + SECOND + MOMENT, "ready")
        self.record(live, at + SECOND + 2 * MOMENT, "done", "nap")
        self.claim(live, at + SECOND + 2 * MOMENT)
        self.record(live, at + SECOND + 3 * MOMENT, "begin", "called")
        self.record(live, at + SECOND + 4 * MOMENT, "done", "called")
        self.record(live, at + SECOND + 5 * MOMENT, "done", "left")
        self.leave(live, at + SECOND + 6 * MOMENT, "scheduled", due_at=at + 2 * SECOND)
        self.change(live, "update", at + 2 * SECOND + MOMENT, "ready")
        self.claim(live, at + 2 * SECOND + 2 * MOMENT)
        self.record(live, at + 2 * SECOND + 3 * MOMENT, "done", "right")
        self.finish(live, at + 3 * SECOND)

    def record(self, live: Live, at: int, kind: str, name: str) -> None:
        self.history.records.append(Record(0, at, kind, live.row.id, name, live.row.token, live.row.lost))  # type: ignore[arg-type]

    def failed(self) -> None:
        at = self.instant()
        live = self.begin(at, retries=0)
        self.claim(live, at + MOMENT)
        self.finish(live, at + SECOND, "failed", "error")

    def keyed(self) -> None:
        at = self.instant()
        live = self.begin(at, acknowledged=False)
        key = f"key-{live.row.id}"
        self.history.journal += [
            Request("keyed", at - MOMENT, at + 5 * MOMENT, 0, [], key),
            Request("keyed", at + 6 * MOMENT, at + 9 * MOMENT, 200, [live.row.id], key, was_created=False),
        ]
        self.claim(live, at + MOMENT)
        self.finish(live, at + SECOND)

    def cancelled(self) -> None:
        at = self.instant()
        live = self.begin(at, "scheduled", due_at=at + 10 * SECOND)
        live.is_cancelled = True
        self.change(live, "update", at + SECOND, "scheduled")
        self.finish(live, at + SECOND + MOMENT, "cancelled", "cancelled")
        self.history.journal.append(
            Request("cancel", at + SECOND - MOMENT, at + SECOND + 2 * MOMENT, 200, [live.row.id])
        )

    def limited(self, number: int = 6) -> None:
        """Two at a time, in pairs."""
        at, key = self.instant(), f"key-{self.new_id()}"
        for place in range(number):
            live = self.begin(at + place, "held", concurrency_key=key, concurrency_limit=2)
            let_go = at + MOMENT + place // 2 * SECOND
            self.change(live, "update", let_go + place % 2, "ready")
            self.claim(live, let_go + MOMENT + place % 2)
            self.finish(live, let_go + SECOND - 3 * MOMENT + place % 2)

    def paused(self) -> None:
        at, queue = self.instant(), f"queue-{self.new_id()}"
        for place in range(3):
            live = self.begin(at + place, queue=queue)
            self.claim(live, at + 5 * SECOND + place)
            self.finish(live, at + 6 * SECOND + place)
        self.history.journal += [
            Request("pause", at - 2 * SECOND, at - SECOND, 200, [], queue),
            Request("resume", at + 4 * SECOND, at + 4 * SECOND + MOMENT, 200, [], queue),
        ]

    def diamond(self) -> None:
        """a, then b and c, then d. c fails, so d is skipped and e, which follows a failure, runs."""
        at, workflow = self.instant(), self.new_id()
        whole = self.begin(at, "waiting", id=workflow, task="workflow", has_ledger=False)
        keys = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["c"]}
        rules = dict.fromkeys("abcd", "all_success") | {"e": "one_failed"}
        ids = {key: self.new_id() for key in keys}
        steps = {
            key: self.begin(
                at, "waiting" if after else "ready", acknowledged=False, id=ids[key], parent_id=workflow, step=key,
                upstream=[ids[other] for other in after], rule=rules[key], retries=0,
            )
            for key, after in keys.items()
        }  # fmt: skip
        self.claim(steps["a"], at + MOMENT)
        self.finish(steps["a"], at + SECOND)
        for key in "bc":
            self.change(steps[key], "update", at + SECOND + 1, "ready")
            self.claim(steps[key], at + SECOND + MOMENT)
        self.finish(steps["b"], at + 2 * SECOND)
        self.finish(steps["c"], at + 3 * SECOND, "failed", "error")
        self.change(steps["e"], "update", at + 3 * SECOND + 1, "ready")
        self.finish(steps["d"], at + 3 * SECOND + 2, "skipped", "dependency_failed")
        self.claim(steps["e"], at + 3 * SECOND + MOMENT)
        self.finish(steps["e"], at + 4 * SECOND)
        self.finish(whole, at + 4 * SECOND + 1, "failed", "dependency_failed")
        outcomes = dict.fromkeys("abde", "succeeded") | {"c": "failed"}
        self.history.workflows.append(
            Workflow(workflow, [WorkflowStep(key, keys[key], rules[key], outcomes[key]) for key in keys])
        )

    def dependent(self) -> None:
        """A chain of three that succeeds, and a run that is skipped because the one before it fails."""
        at = self.instant()
        first = self.begin(at)
        second, third = (
            self.begin(at + place * MOMENT, "waiting", upstream=[before]) for place, before in ((1, first.row.id),) * 2
        )
        third.row.upstream = [first.row.id, second.row.id]
        self.claim(first, at + 3 * MOMENT)
        self.finish(first, at + SECOND)
        for place, live in ((1, second), (2, third)):
            self.change(live, "update", at + place * SECOND + 1, "ready")
            self.claim(live, at + place * SECOND + MOMENT)
            self.finish(live, at + (place + 1) * SECOND)
        failing = self.begin(at, retries=0)
        skipped = self.begin(at + MOMENT, "waiting", upstream=[failing.row.id], retries=0)
        self.claim(failing, at + 2 * MOMENT)
        self.finish(failing, at + SECOND, "failed", "error")
        self.finish(skipped, at + SECOND + 1, "skipped", "dependency_failed")

    def fired(self) -> None:
        """Two jobs without a schedule: one depends on one recurring job, the other on two."""
        made_at = START + 20 * SECOND
        # The recurring jobs themselves are left out: only their runs matter.
        before, other = self.new_id(), self.new_id()
        alone, joined = (self.fired_job(made_at, dependencies) for dependencies in ([before], [before, other]))
        for place in range(4):
            at = made_at + (10 + 10 * place) * SECOND
            first, second = (self.lived(at, job_id=job_id, tick_at=at) for job_id in (before, other))
            self.lived(at + 2 * SECOND, job_id=alone.id, tick_at=at + SECOND, upstream=[first])
            self.lived(at + 2 * SECOND, job_id=joined.id, tick_at=at + SECOND, upstream=[first, second])

    def fired_job(self, made_at: int, dependencies: list[str]) -> Job:
        job_id, version = self.new_id(), JobVersion(made_at, msgspec.json.encode(Schedule()).decode(), None)
        job = Job(job_id, f"fired {job_id}", 0, "allow_all", 0, [version], [], dependencies, is_fired=True)
        self.history.jobs.append(job)
        return job

    def lived(self, at: int, **fields: Any) -> str:
        live = self.begin(at, acknowledged=False, **fields)
        self.claim(live, at + MOMENT)
        self.finish(live, at + SECOND)
        return live.row.id

    def recurring(self, every: int = 20) -> None:
        job_id = UUID(int=self.chance.getrandbits(128))
        schedule = Schedule(every=f"{every}s")
        made_at = START + 50 * SECOND
        ticks = list(range(made_at // SECOND + every, (START + LENGTH) // SECOND, every))
        missed, fired = ticks[4:6], ticks[:4] + ticks[6:]
        shard = shard_of(job_id)
        job = Job(
            str(job_id), f"job {job_id}", shard, "skip", (ticks[-1] + every) * SECOND,
            [JobVersion(made_at, msgspec.json.encode(schedule).decode(), None)],
            [TickNote(missed[0] * SECOND, missed[1] * SECOND, missed[1] * SECOND + MOMENT, "missed")],
        )  # fmt: skip
        self.history.jobs.append(job)
        self.history.journal.append(Request("recurring", made_at - MOMENT, made_at + MOMENT, 201, [job.id]))
        for tick in fired:
            at = tick * SECOND + MOMENT
            node = "s1" if shard % 2 and at < DIES_AT + 9 * SECOND else "s2"
            run_id = str(tick_run_id(job_id, tick))
            live = self.begin(
                at, acknowledged=False, due_at=tick * SECOND, id=run_id, job_id=job.id, tick_at=tick * SECOND
            )
            self.history.changes[-1].writer = NODES[node]
            self.claim(live, at + MOMENT)
            self.finish(live, at + SECOND)

    def leases(self) -> None:
        """Workers renew their leases every five seconds. The first node dies with the third worker, and the second node
        takes its shards."""
        for worker, writer in (*WORKERS.items(), DYING):
            last = DIES_AT if worker == DYING[0] else START + LENGTH + 60 * SECOND
            for at in range(START, last + 1, 5 * SECOND):
                self.history.leases.append(Lease(0, at, "worker", worker, writer, worker, worker, 0, at + TTL, 0))
        self.history.leases.append(
            Lease(
                0,
                DIES_AT + TTL + MOMENT,
                "worker",
                DYING[0],
                "node_5",
                "",
                DYING[0],
                0,
                DIES_AT + TTL + MOMENT,
                DIES_AT + TTL,
            )
        )
        for shard in range(100):
            node = "s1" if shard % 2 else "s2"
            self.history.leases.append(
                Lease(0, START, "shard", str(shard), NODES[node], node, "", 1, START + 9 * SECOND, 0)
            )
            if shard % 2:
                end = DIES_AT + 9 * SECOND
                lease = Lease(
                    0, end - MOMENT, "shard", str(shard), NODES["s2"], "s2", "s1", 2, end + 9 * SECOND, end - 2 * MOMENT
                )
                self.history.leases.append(lease)
        self.history.faults += [
            Fault("kill", "worker 3", 3, DIES_AT, DIES_AT + TTL + 3 * SECOND, "", DIES_AT),
            Fault("stop", "worker 1", 1, START + 400 * SECOND, START + 403 * SECOND, "", START + 403 * SECOND),
            Fault("crash_postgres", "postgres", 0, BACK_AT - 3 * SECOND, BACK_AT + 8 * SECOND, "", BACK_AT),
        ]

    def resumed(self) -> None:
        """Right after PostgreSQL is back."""
        live = self.begin(BACK_AT + SECOND)
        self.claim(live, BACK_AT + SECOND + MOMENT)
        self.finish(live, BACK_AT + 2 * SECOND)

    def memory(self) -> None:
        """Warms up in the first minute, and varies a little after that."""
        for name, process, most in (("worker-1", 1, 52_000_000), ("server-1", 7, 200_000_000)):
            for at in range(START, START + LENGTH, 2 * SECOND):
                warm = min(1.0, 0.5 + (at - START) / (120 * SECOND))
                self.history.memory.append(
                    Memory(at, name, process, int(most * warm * self.chance.uniform(0.97, 1.03)))
                )

    def numbered(self) -> History:
        """Sorts the changes by time, and numbers them."""
        history = self.history
        changes = sorted(history.changes, key=lambda change: change.at)
        everything: list[Change | Record] = [*changes, *history.records]
        for seq, one in enumerate(sorted(everything, key=lambda one: one.at), 1):
            one.seq = seq
        history.changes[:] = changes
        for seq, lease in enumerate(sorted(history.leases, key=lambda lease: lease.at), 1):
            lease.seq = seq
        return history


def good_history(seed: int, *, lives: int = 40) -> History:
    """`lives` of each of the dozen kinds of lives, but one in ten of those that need much."""
    maker = Maker(random.Random(seed))
    maker.leases()
    maker.resumed()
    maker.memory()
    for _ in range(lives):
        for live in (
            maker.plain,
            maker.delayed,
            maker.retried,
            maker.released,
            maker.lost,
            maker.once_only,
            maker.failed,
            maker.durable,
            maker.keyed,
        ):
            live()
        maker.cancelled()
        maker.transactional()
        maker.dependent()
    for _ in range(max(1, lives // 10)):
        for live in (maker.limited, maker.paused, maker.diamond, maker.buried, maker.recurring, maker.fired):
            live()
    return maker.numbered()
