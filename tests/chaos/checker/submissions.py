"""Invariants of submissions: the answers that clients got, and the stored jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.checker.history import History, Request
from tests.chaos.checker.invariant import invariant

MAKING = ("job", "keyed", "workflow")


def is_acknowledged(request: Request) -> bool:
    return 200 <= request.status < 300


@invariant(1)
def acknowledged_is_kept(history: History) -> Iterator[str]:
    """Every acknowledged submission exists: live, in history, or as a recurring job."""
    jobs = {job.id for job in history.jobs}
    for request in history.journal:
        if is_acknowledged(request):
            known: object = (
                history.by_id if request.kind in MAKING else jobs if request.kind == "recurring" else request.ids
            )
            for made in request.ids:
                if made not in known:  # type: ignore[operator]
                    yield f"{request.kind} {made}, acknowledged at {request.answered_at}, is not there"


@invariant(2)
def one_origin(history: History) -> Iterator[str]:
    """Every run has exactly one origin: a request, a tick, a workflow or a rerun."""
    for run_id, changes in history.changes_of.items():
        inserted = sum(change.kind == "insert" for change in changes)
        if inserted != 1:
            yield f"run {run_id} was stored {inserted} times"
    for run_id, number in Counter(run.id for run in history.runs).items():
        if number > 1:
            yield f"run {run_id} is there {number} times"
    for run in history.runs:
        if run.job_id and run.parent_id:
            yield f"run {run.id} is of job {run.job_id} and of workflow {run.parent_id}"


@invariant(3)
def one_key_one_job(history: History) -> Iterator[str]:
    """One idempotency key makes one job, and repeated requests return it."""
    by_key: dict[str, list[Request]] = {}
    for request in history.journal:
        if request.kind == "keyed" and is_acknowledged(request):
            by_key.setdefault(request.key, []).append(request)
    for key, requests in by_key.items():
        ids = {made for request in requests for made in request.ids}
        if len(ids) != 1:
            yield f"key {key} stands for {len(ids)} jobs: {sorted(ids)}"
        if sum(request.was_created for request in requests) > 1:
            yield f"key {key} made a job {sum(request.was_created for request in requests)} times"


@invariant(35)
def conserved(history: History) -> Iterator[str]:
    """Every stored run is live or ended: none vanishes, none appears."""
    stored = {change.run_id for change in history.changes if change.kind == "insert"}
    for run_id in sorted(stored - history.by_id.keys()):
        yield f"run {run_id} was stored and is gone"
    for run_id in sorted(history.by_id.keys() - stored):
        yield f"run {run_id} is there and was never stored"


@invariant(36)
def removed_only_when_ended(history: History) -> Iterator[str]:
    """A run leaves the live table only together with its end."""
    for run_id, changes in history.changes_of.items():
        ends = {change.transaction for change in changes if change.kind == "finish"}
        for change in changes:
            if change.kind == "delete" and change.transaction not in ends:
                yield f"run {run_id} was removed at {change.at} and did not end"
