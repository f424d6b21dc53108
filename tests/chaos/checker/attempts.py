"""Invariants of claims, tokens, states, and the effects of attempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from foliot.model.states import TRANSITIONS, RunState
from tests.chaos.checker.history import SECOND, Change, Fault, History
from tests.chaos.checker.invariant import invariant

CLOCKS_AGREE = SECOND // 20
"""Two clock readings on one machine, taken by different processes and converted, differ by less."""
KILLED_WITHIN = 5 * SECOND
"""The time that a worker needs to stop its attempts after it has thawed or lost its lease."""
LOOK_SECONDS = 1.0
"""The longest search for dead workers, on a busy machine."""
WRITTEN_SECONDS = 5.0
"""The longest time from an attempt's end until it is stored, on a busy machine."""
LOOKING = ("postgres", "scheduler")
"""Faults of these parts delay the discovery of a dead worker. Faults of workers do not."""
FREEZING = ("stop", "freeze")
ALLOWED = {str(state): frozenset(map(str, following)) for state, following in TRANSITIONS.items()}


def is_claim(change: Change) -> bool:
    return change.after == "running" and change.before != "running"


def claims_of(changes: list[Change]) -> dict[int, Change]:
    """By token."""
    return {change.token: change for change in changes if is_claim(change)}


def losses(changes: list[Change]) -> Iterator[Change]:
    """Changes that gave up an attempt because its worker was dead."""
    lost = 0
    for change in changes:
        if change.lost > lost:
            yield change
        lost = change.lost


@invariant(9)
def one_attempt_at_a_time(history: History) -> Iterator[str]:
    """A run has at most one live attempt. Attempts are numbered without gaps, with growing tokens."""
    for run_id, changes in history.changes_of.items():
        token, attempt, holder = 0, 0, ""
        for change in changes:
            if is_claim(change) and (change.token != token + 1 or change.attempt != attempt + 1):
                yield (
                    f"run {run_id} went from attempt {attempt}, token {token} to {change.attempt}, {change.token} "
                    f"at {change.at}"
                )
            elif not is_claim(change) and change.token != token and change.kind != "insert":
                yield f"run {run_id} went from token {token} to {change.token} without a claim at {change.at}"
            if change.before == "running" == change.after and change.worker_id != holder:
                yield f"run {run_id} went from worker {holder} to {change.worker_id} without a claim at {change.at}"
            token, attempt, holder = change.token, change.attempt, change.worker_id


@invariant(10)
def stale_tokens_are_refused(history: History) -> Iterator[str]:
    """No accepted write carries a token lower than one that was granted."""
    for run_id, changes in history.changes_of.items():
        claim: Change | None = None
        for change in changes:
            if is_claim(change):
                claim = change
            elif claim is not None and change.token < claim.token:
                yield (
                    f"run {run_id}: {change.kind} at {change.at} with token {change.token} after {claim.token} was "
                    f"granted"
                )
            elif claim is not None and change.kind == "finish" and not _may_finish(claim, change):
                yield (
                    f"run {run_id} was claimed by {claim.worker_id} ({claim.writer}), finished by "
                    f"{change.worker_id} ({change.writer})"
                )


def _may_finish(claim: Change, end: Change) -> bool:
    """Any process may fail a lost run or cancel it. A workflow succeeds with its last step, and names no worker."""
    if end.after != "succeeded" or not end.worker_id:
        return True
    return end.worker_id == claim.worker_id and (not end.writer or not claim.writer or end.writer == claim.writer)


@invariant(11)
def ends_once(history: History) -> Iterator[str]:
    """A run ends exactly once, and its end never changes."""
    for run_id, changes in history.changes_of.items():
        ends = [place for place, change in enumerate(changes) if change.kind == "finish"]
        run = history.by_id.get(run_id)
        if len(ends) > 1:
            yield f"run {run_id} ended {len(ends)} times"
        if ends and ends[0] != len(changes) - 1:
            yield f"run {run_id} changed after its end at {changes[ends[0]].at}"
        if run is not None and run.is_live != (not ends):
            yield f"run {run_id} is {'live' if run.is_live else 'ended'} and ended {len(ends)} times"
        if run is not None and ends and run.state != changes[ends[0]].after:
            yield f"run {run_id} ended as {changes[ends[0]].after} and is {run.state}"


@invariant(12)
def allowed_transitions(history: History) -> Iterator[str]:
    """Each transition is in the table of states and starts where the previous one ended."""
    for run_id, changes in history.changes_of.items():
        state = ""
        for change in changes:
            if change.kind != "finish" and change.before != state:
                yield f"run {run_id} was {state!r} and is changed from {change.before!r} at {change.at}"
            if change.kind == "insert":
                if change.after not in ("waiting", "scheduled", "held", "ready"):
                    yield f"run {run_id} began as {change.after!r}"
            elif change.after and change.after != state and change.after not in ALLOWED.get(state, ()):
                yield f"run {run_id} went from {state!r} to {change.after!r} at {change.at}"
            state = change.after or state


@invariant(13)
def budgets(history: History) -> Iterator[str]:
    """A run uses at most `retries` + 1 attempts and at most the allowed lost ones. Released attempts do not count, nor
    do losses before the last recorded step."""
    for run in history.runs:
        if run.attempt - run.lost > run.retries + 1:
            yield f"run {run.id} had {run.attempt - run.lost} attempts and {run.retries} retries"
        before = max((record.lost for record in history.records_of.get(run.id, ())), default=0)
        if run.lost - before > history.settings.lost_attempts_max:
            yield (
                f"run {run.id} was lost {run.lost - before} times, and may be {history.settings.lost_attempts_max} "
                f"times"
            )


@invariant(14)
def backs_off(history: History) -> Iterator[str]:
    """An attempt starts no earlier than the back-off allows."""
    for run_id, changes in history.changes_of.items():
        due_at = started_at = 0
        for change in changes:
            if is_claim(change):
                if change.at < due_at:
                    yield f"run {run_id} started again at {change.at}, and was to wait until {due_at}"
                started_at = change.at
            elif change.before == "running" and change.after == "scheduled":
                due_at = change.due_at
                if due_at < started_at:
                    yield (
                        f"run {run_id} is to start again at {due_at}, before the attempt that failed, which began "
                        f"at {started_at}"
                    )


@invariant(15)
def time_limits(history: History) -> Iterator[str]:
    """An attempt ends within its timeout, the grace period and a margin, or is lost."""
    settings = history.settings
    room = settings.grace_seconds + WRITTEN_SECONDS
    for run_id, changes in history.changes_of.items():
        run = history.by_id.get(run_id)
        since = lost = 0
        for change in changes:
            if is_claim(change):
                since, lost = change.at, change.lost
            elif since and run is not None and change.before == "running" != change.after:
                seconds, most = (change.at - since) / SECOND, run.timeout_seconds + room
                if change.lost == lost and seconds > most and seconds > most + history.slowed_seconds(since, change.at):
                    yield f"run {run_id} has {run.timeout_seconds:g} s and took {seconds:.1f} s until {change.at}"
                since = 0


@invariant(16)
def lost_in_time(history: History) -> Iterator[str]:
    """A worker's runs move no earlier than its lease expires, and within a second of the next check."""
    ends = lease_ends(history)
    room = history.settings.reaper_seconds + LOOK_SECONDS
    for claim, loss in lost_claims(history):
        end = ends.get(claim.worker_id)
        if end is None:
            yield f"run {loss.run_id} was lost at {loss.at} by worker {claim.worker_id}, which never registered"
        elif loss.at < end:
            yield f"run {loss.run_id} was taken at {loss.at} from worker {claim.worker_id}, whose lease ends at {end}"
        else:
            # The next search finds a claim that was on its way when the lease ended.
            since = max(end, claim.at)
            if (late := (loss.at - since) / SECOND) > room + history.slowed_seconds(since, loss.at, LOOKING):
                yield (
                    f"run {loss.run_id} was taken from worker {claim.worker_id} {late:.1f} s after its lease had ended"
                )


def lost_claims(history: History) -> Iterator[tuple[Change, Change]]:
    """Claims that were given up because their worker was dead, each with the change that did it."""
    for changes in history.changes_of.values():
        for loss in losses(changes):
            claim = next((claim for claim in reversed(changes) if is_claim(claim) and claim.seq < loss.seq), None)
            if claim is not None:
                yield claim, loss


def lease_ends(history: History) -> dict[str, int]:
    """The instant at which each worker's lease ended: the end of its last renewal, or its shutdown."""
    ends: dict[str, int] = {}
    for lease in sorted((lease for lease in history.leases if lease.kind == "worker"), key=lambda lease: lease.seq):
        ends[lease.id] = lease.expires_at if lease.owner else min(lease.at, lease.expired_at)
    return ends


@invariant(17)
def nothing_is_done_without_a_lease(history: History) -> Iterator[str]:
    """Jobs do not act after their worker's lease has expired, except briefly after a freeze."""
    ends = lease_ends(history)
    frozen: dict[int, list[Fault]] = {}
    for fault in history.faults:
        if fault.kind in FREEZING:
            frozen.setdefault(fault.process, []).append(fault)
    for run_id, effects in history.effects_of.items():
        claims = claims_of(history.changes_of.get(run_id, []))
        for effect in effects:
            claim = claims.get(effect.token)
            end = ends.get(claim.worker_id) if claim else None
            if end is None or effect.at <= end + CLOCKS_AGREE:
                continue
            if not any(
                fault.since <= end and effect.at <= fault.until + KILLED_WITHIN
                for fault in frozen.get(effect.process, ())
            ):
                yield (
                    f"run {run_id}, token {effect.token}: {effect.kind} {(effect.at - end) / SECOND:.1f} s after "
                    f"its worker's lease"
                )


@invariant(19)
def at_most_once(history: History) -> Iterator[str]:
    """An `at_most_once` run starts at most once."""
    for run in history.runs:
        if run.guarantee == "at_most_once":
            # Every start counts, whatever its token: a worker that starts its own run again uses the same one.
            started = [effect.token for effect in history.effects_of.get(run.id, ()) if effect.kind == "start"]
            if len(started) > 1:
                yield f"run {run.id} may start once and started {len(started)} times, under tokens {sorted(started)}"


@invariant(42)
def one_start_per_token(history: History) -> Iterator[str]:
    """A claim starts its run once: no two starts share a run and a token."""
    for run_id, effects in history.effects_of.items():
        starts = Counter(effect.token for effect in effects if effect.kind == "start")
        for token, number in starts.items():
            if number > 1:
                yield f"run {run_id} started {number} times under token {token}"


@invariant(20)
def effects_have_claims(history: History) -> Iterator[str]:
    """Jobs act only under a claim. A success acted under its last token, exactly once if transactional."""
    for run_id, effects in history.effects_of.items():
        claims = claims_of(history.changes_of.get(run_id, []))
        for effect in effects:
            claim = claims.get(effect.token)
            if claim is None:
                yield f"run {run_id}: {effect.kind} at {effect.at} under token {effect.token}, which was never granted"
            elif effect.at < claim.at - CLOCKS_AGREE:
                yield (
                    f"run {run_id}: {effect.kind} at {effect.at}, before token {effect.token} was granted at {claim.at}"
                )
    for run in history.runs:
        if run.has_ledger:
            done = [(effect.kind, effect.token) for effect in history.effects_of.get(run.id, ())]
            committed = [token for kind, token in done if kind == "commit"]
            if run.guarantee == "transactional":
                if committed != [run.token] * (run.state == "succeeded"):
                    yield (
                        f"run {run.id} is {run.state} with token {run.token}, and its effect was committed under "
                        f"{committed}"
                    )
            elif run.state == "succeeded" and ("finish", run.token) not in done:
                yield f"run {run.id} succeeded with token {run.token}, and did nothing under it"


@invariant(31)
def output_is_capped(history: History) -> Iterator[str]:
    """Foliot keeps no more output than the limit."""
    # The line that says how much was cut comes on top.
    most = history.settings.output_max_bytes + 200
    for run in history.runs:
        if run.output_bytes > most:
            yield f"run {run.id} has {run.output_bytes} bytes of output"


@invariant(34)
def time_goes_forward(history: History) -> Iterator[str]:
    """No duration is negative. The order of changes and the database's time agree within a second."""
    latest = 0
    for change in history.changes:
        if change.at < latest - SECOND:
            yield f"run {change.run_id}: {change.kind} at {change.at}, after something that was written at {latest}"
        latest = max(latest, change.at)
    for run in history.runs:
        if run.finished_at and (
            run.finished_at < run.created_at or (run.started_at and run.finished_at < run.started_at)
        ):
            yield f"run {run.id} was created {run.created_at}, started {run.started_at}, finished {run.finished_at}"


TERMINAL = frozenset(str(state) for state in RunState if not TRANSITIONS[state])
