"""Measures, from a history, the times between a fault and the recovery from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.chaos.checker.attempts import LOOKING, claims_of, lease_ends, lost_claims
from tests.chaos.checker.history import SECOND, History, Lease
from tests.chaos.checker.recovery import DATABASE_FAULTS, Throughput, healed

FATAL = ("kill",)


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    seconds: list[float]

    def __str__(self) -> str:
        if not self.seconds:
            return f"{self.name}: never"
        parts = ", ".join(
            f"{word} {quantile(self.seconds, share):.2f}" for word, share in (("p50", 0.5), ("p99", 0.99), ("most", 1))
        )
        return f"{self.name}: {len(self.seconds)} times, {parts} s"


def taken(history: History) -> str:
    """How much of the machine was not ours."""
    seconds = sum(one.until - one.since for one in history.taken)
    if not seconds:
        return "the machine: not measured"
    host, others = (
        sum(getattr(one, name) * (one.until - one.since) for one in history.taken) / seconds
        for name in ("host", "others")
    )
    worst = max(history.taken, key=lambda one: one.host)
    return (
        f"the machine: its host took {host:.1%} of a core ({worst.host:.1%} in the worst "
        f"{(worst.until - worst.since) / SECOND:.0f} s), other processes {others:.1%} of all cores"
    )


def quantile(seconds: Sequence[float], share: float) -> float:
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def figures(history: History) -> list[Figure]:
    once, twice = noticed(history)
    owned, owned_in_spite = owned_again(history)
    return [
        Figure("from a worker's last beat to its runs being given back", once),
        Figure("the same, with a fault of PostgreSQL or of a scheduler node in between", twice),
        Figure("from a claim of a worker whose lease is over to its being given back", list(_late_claims(history))),
        Figure("from a worker's death to its runs being given back", list(given_back(history))),
        Figure("from a scheduler node's last renewal to its shards' next owner", owned),
        Figure("the same, with PostgreSQL or the other node in trouble, too", owned_in_spite),
        Figure("from PostgreSQL being back to the next run that ended", list(_resumed(history))),
        Figure("from a fault's end to half the usual throughput", list(_recovered(history))),
        Figure("from ready to running", list(_lags(history))),
    ]


def noticed(history: History) -> tuple[list[float], list[float]]:
    """Once for each worker, by the last of its runs. Separate: cases in which the schedulers had faults of their
    own."""
    ends = lease_ends(history)
    found: tuple[list[float], list[float]] = ([], [])
    for worker_id, at in _last_losses(history).items():
        if (end := ends.get(worker_id)) is not None:
            seconds = (at - end) / SECOND + history.settings.worker_ttl_seconds
            found[history.disturbed_seconds(end, at, LOOKING) > 0].append(seconds)
    return found


def _last_losses(history: History) -> dict[str, int]:
    """Of the runs that each worker had claimed while it had a lease."""
    ends = lease_ends(history)
    found: dict[str, int] = {}
    for claim, loss in lost_claims(history):
        if claim.at <= ends.get(claim.worker_id, 0):
            found[claim.worker_id] = max(found.get(claim.worker_id, 0), loss.at)
    return found


def _late_claims(history: History) -> Iterator[float]:
    """Claims on their way when the lease ended: the worker was frozen, or PostgreSQL was down."""
    ends = lease_ends(history)
    return (
        (loss.at - claim.at) / SECOND
        for claim, loss in lost_claims(history)
        if claim.at > ends.get(claim.worker_id, claim.at)
    )


def given_back(history: History) -> Iterator[float]:
    """Identifies a process by the tokens in the ledger of its jobs, and so its worker."""
    workers: dict[int, set[str]] = {}
    for run_id, effects in history.effects_of.items():
        claims = claims_of(history.changes_of.get(run_id, []))
        for effect in effects:
            if effect.token in claims:
                workers.setdefault(effect.process, set()).add(claims[effect.token].worker_id)
    lost = _last_losses(history)
    for fault in history.faults:
        if fault.kind in FATAL and fault.process:
            yield from (
                (lost[worker] - fault.since) / SECOND
                for worker in workers.get(fault.process, ())
                if lost.get(worker, 0) > fault.since
            )


def owned_again(history: History) -> tuple[list[float], list[float]]:
    """Once for each shard. Separate: cases in which the next owner had faults of its own."""
    found: tuple[list[float], list[float]] = ([], [])
    for lease, seconds in _taken_over(history):
        renewed_at = lease.at - int(seconds * SECOND)
        nodes = {
            fault.target
            for fault in history.faults
            if fault.target.startswith("scheduler") and fault.since < lease.at and fault.until > renewed_at
        }
        found[len(nodes) > 1 or history.disturbed_seconds(lease.expired_at, lease.at, "postgres") > 0].append(seconds)
    return found


def owned_again_by_node(history: History) -> list[float]:
    """Once for each node, by the last of its shards."""
    found: dict[str, float] = {}
    for lease, seconds in _taken_over(history):
        found[lease.owner_before] = max(found.get(lease.owner_before, 0), seconds)
    return list(found.values())


def _taken_over(history: History) -> Iterator[tuple[Lease, float]]:
    """Shards that moved from one node to another, each with the seconds since its last renewal."""
    for lease in history.leases:
        if lease.kind == "shard" and lease.owner and lease.owner_before and lease.expired_at:
            yield lease, (lease.at - lease.expired_at) / SECOND + history.settings.shard_ttl_seconds


def _resumed(history: History) -> Iterator[float]:
    throughput = Throughput(history)
    for fault in healed(history):
        if fault.kind in DATABASE_FAULTS and (at := throughput.next_end(fault.healed_at)) is not None:
            yield (at - fault.healed_at) / SECOND


def _recovered(history: History) -> Iterator[float]:
    """Until half the usual number of runs end in five seconds."""
    throughput = Throughput(history)
    for fault in healed(history):
        if (at := throughput.recovered_at(fault.healed_at)) is not None:
            yield (at - fault.healed_at) / SECOND


def _lags(history: History) -> Iterator[float]:
    for changes in history.changes_of.values():
        ready_at = 0
        for change in changes:
            if change.after == "running" and ready_at:
                yield (change.at - ready_at) / SECOND
            ready_at = (ready_at or change.at) if change.after == "ready" else 0
