"""Invariants of limits, cancels and pauses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from tests.chaos.checker.attempts import is_claim
from tests.chaos.checker.history import History
from tests.chaos.checker.invariant import invariant
from tests.chaos.checker.submissions import is_acknowledged


@invariant(25)
def limits_hold(history: History) -> Iterator[str]:
    """Runs with one concurrency key never exceed its limit."""
    limited = {run.id: run for run in history.runs if run.concurrency_key}
    running: dict[str, set[str]] = {}
    for change in history.changes:
        run = limited.get(change.run_id)
        if run is None:
            continue
        runs = running.setdefault(run.concurrency_key, set())
        if change.after == "running":
            runs.add(change.run_id)
            if len(runs) > run.concurrency_limit:
                yield f"{len(runs)} runs of {run.concurrency_key} at {change.at}, and {run.concurrency_limit} may run"
        else:
            runs.discard(change.run_id)


@invariant(29)
def cancelled_before_its_start_never_starts(history: History) -> Iterator[str]:
    """After the response to a cancel, the run does not start."""
    for request in history.journal:
        if request.kind == "cancel" and is_acknowledged(request):
            for run_id in request.ids:
                for change in history.changes_of.get(run_id, ()):
                    if is_claim(change) and change.began_at > request.answered_at:
                        yield f"run {run_id} was cancelled at {request.answered_at} and started at {change.at}"


@invariant(30)
def paused_is_paused(history: History) -> Iterator[str]:
    """No run is claimed from a paused queue."""
    pauses: dict[str, list[tuple[int, int]]] = {}
    since: dict[str, int] = {}
    for request in sorted(history.journal, key=lambda request: request.sent_at):
        if request.kind == "pause" and is_acknowledged(request):
            since.setdefault(request.key, request.answered_at)
        elif request.kind == "resume" and request.key in since:
            # Acknowledged or not: it may have taken effect from the moment it was sent.
            pauses.setdefault(request.key, []).append((since.pop(request.key), request.sent_at))
    for queue, begun_at in since.items():
        pauses.setdefault(queue, []).append((begun_at, history.settings.ended_at))
    if not pauses:
        return
    queues = {run.id: run.queue for run in history.runs if run.queue in pauses}
    for change in history.changes:
        if is_claim(change) and (queue := queues.get(change.run_id, "")):
            place = bisect_right(pauses[queue], (change.began_at, 1 << 62)) - 1
            # A transaction may have waited for the end of the pause between its beginning and its claim.
            if place >= 0 and pauses[queue][place][0] < change.began_at and change.at < pauses[queue][place][1]:
                yield (
                    f"run {change.run_id} was claimed at {change.at} from {queue}, paused at {pauses[queue][place][0]}"
                )
