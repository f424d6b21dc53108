"""Explains why a run, job or queue waits: the gates that it passes in order, and one sentence about each.

`store/explain.py` reads the rows that these functions take: columns of the queries in `store/sql/explain.sql`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.checkpoint import Awaits, describe
from foliot.model.concurrency import Concurrency
from foliot.model.job import RecurringJob
from foliot.model.namespace import bare, bare_key
from foliot.model.rate_limit import RateLimit
from foliot.model.run import RunOptions

Row = Mapping[str, Any]
COUNT_MAX = 10_000
"""Counting stops here."""
MADE_LATE = timedelta(seconds=1)
decode_awaits = msgspec.json.Decoder(Awaits).decode


class Gate(msgspec.Struct, frozen=True, omit_defaults=True):
    gate: str
    """The kind, for programs: dependencies, condition, due, signal, function, overlap, concurrency, rate, pause,
    circuit, queue_limit, worker, line, archive."""
    is_open: bool
    detail: str
    numbers: dict[str, Any] = {}


class Explanation(msgspec.Struct, frozen=True):
    id: str
    kind: str
    """run, workflow, map, job, queue or archive."""
    name: str | None
    state: str
    summary: str
    """One sentence about the first closed gate, or about the state if all gates are open."""
    gates: list[Gate]


def summed_up(gates: list[Gate], otherwise: str) -> str:
    return next((gate.detail for gate in gates if not gate.is_open), otherwise)


def archive_gate(kind: str, archived_until: datetime, failing_since: datetime | None, *, is_running: bool) -> Gate:
    """How far rows of a kind are archived, and since when the archive does not take them."""
    numbers = {"archived_until": archived_until}
    if failing_since is not None:
        detail = f"the archive has not taken {kind} since {failing_since:%Y-%m-%d %H:%M} UTC; foliot doctor says why"
    elif not is_running:
        detail = f"no scheduler node archives {kind}; does one have the setting archive_url?"
    else:
        detail = f"{kind} before {archived_until:%Y-%m-%d %H:%M} UTC are archived"
    return Gate("archive", failing_since is None and is_running, detail, numbers)


def waiting_days(number: int) -> str:
    if not number:
        return "no day past retention waits for it"
    days = "day is" if number == 1 else "days are"
    return f"{number} {days} past retention and stay in the database until the archive has them"


def cancelled_gate(row: Row) -> Gate | None:
    return (
        None if row["cancel"] is None else Gate("cancel", is_open=False, detail="was cancelled, and ends in a moment")
    )


def due_gate(row: Row) -> Gate:
    if row["state"] != "scheduled":
        return _overdue(row)
    wait: timedelta = row["due_at"] - row["at"]
    why = f"attempt {row['attempt'] + 1} is" if row["attempt"] else "is"
    numbers = {"due_at": row["due_at"], "seconds": max(0.0, wait.total_seconds())}
    return Gate(
        "due", is_open=wait.total_seconds() <= 0, detail=f"{why} not due until {_iso(row['due_at'])}", numbers=numbers
    )


def _overdue(row: Row) -> Gate:
    seconds = (row["at"] - row["due_at"]).total_seconds()
    if row["held_by"] == "signal" or seconds < 0:
        return Gate("due", is_open=True, detail="is due")
    detail, numbers = f"has been due since {_iso(row['due_at'])}", {"due_at": row["due_at"], "late_seconds": seconds}
    # A run that was created long after its tick is still due at the tick's time.
    if row["job_id"] is not None and row["created_at"] - row["due_at"] >= MADE_LATE:
        detail += f"; no scheduler node was running to create it before {_iso(row['created_at'])}"
        numbers["made_at"] = row["created_at"]
    return Gate("due", is_open=True, detail=detail, numbers=numbers)


def condition_gate(row: Row, options: RunOptions) -> Gate | None:
    if options.condition is None:
        return None
    when = options.condition.when
    if row["state"] == "waiting":
        return Gate("condition", is_open=False, detail=f"is skipped then unless {when}")
    if row["held_by"] == "condition":
        return Gate("condition", is_open=False, detail=f"a scheduler node is about to decide whether {when}")
    return Gate("condition", is_open=True, detail=f"its condition is true: {when}")


def signal_gate(row: Row, options: RunOptions) -> Gate | None:
    if options.signal is None:
        return None
    if row["held_by"] != "signal":
        return Gate("signal", is_open=True, detail="has received its signal, or does not wait for it yet")
    until = f" until {_iso(row['due_at'])}" if options.signal.timeout_seconds is not None else ""
    return Gate(
        "signal",
        is_open=False,
        detail=f"waits for a signal{until}: foliot signal {row['id']}, or POST /v1/runs/{row['id']}/signal",
    )


def function_gate(row: Row) -> Gate | None:
    if row["awaits"] is None:
        return None
    awaits = decode_awaits(row["awaits"])
    detail = describe(awaits, None if awaits.until is None else _iso(awaits.until))
    if awaits.signals:
        detail += f": foliot signal {row['id']} {shlex.quote(awaits.signals[0])}, or POST /v1/runs/{row['id']}/signal"
    return Gate("function", is_open=False, detail=f"its function {detail}", numbers=msgspec.to_builtins(awaits))


def dependencies_gate(row: Row, upstream: Sequence[Row]) -> Gate | None:
    """`upstream`: some of the runs that are waited for."""
    names = _some(upstream) or "a run that has just ended"
    more = f" and {row['unmet'] - 3} more" if (row["unmet"] or 0) > 3 else ""
    number = f"{row['unmet']} upstream {'run' if row['unmet'] == 1 else 'runs'}"
    return Gate(
        "dependencies",
        is_open=False,
        detail=f"waits for {number}, with the rule {row['rule']}: {names}{more}",
        numbers={"unmet": row["unmet"], "rule": row["rule"], "upstream": _listed(upstream)},
    )


def children_gate(children: Sequence[Row]) -> Gate:
    """Of a workflow or map with these live children."""
    detail = f"waits for its children: {_some(children)}"
    return Gate("children", is_open=False, detail=detail, numbers={"open": _listed(children)})


def _some(runs: Sequence[Row]) -> str:
    return ", ".join(f"{run['name']} ({run['state']})" for run in runs[:3])


def _listed(runs: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {"id": str(run["id"]), "name": run["name"], "state": run["state"], "since": run["created_at"]} for run in runs
    ]


def overlap_gate(other: Row | None) -> Gate:
    """`other`: the live run of the same job that blocks it."""
    if other is None:
        return Gate("overlap", is_open=True, detail="the previous run has ended")
    detail = f"waits for the previous run {other['id']}, which is {other['state']}"
    return Gate("overlap", is_open=False, detail=detail, numbers={"blocked_by": str(other["id"])})


def concurrency_gate(row: Row, limit: Concurrency, taken: int, holders: Sequence[UUID], before: int) -> Gate:
    numbers = {
        "key": bare_key(limit.key),
        "limit": limit.limit,
        "taken": taken,
        "before": before,
        "held_by": [str(holder) for holder in holders],
    }
    is_open = row["held_by"] != "limit" or taken + before < limit.limit
    detail = f"key {bare_key(limit.key)!r}: {taken} of {limit.limit} places are taken, and {_ahead(before)} ahead"
    return Gate("concurrency", is_open=is_open, detail=detail, numbers=numbers)


def rate_gate(row: Row, limit: RateLimit, started: int, free_at: datetime | None, before: int) -> Gate:
    key = bare_key(limit.key)
    numbers = {"key": key, "limit": limit.limit, "started": started, "before": before, "free_at": free_at}
    is_open = row["held_by"] != "limit" or started + before < limit.limit
    used = f"{started} of {limit.limit} starts in {limit.period_seconds:g} s are used"
    return Gate("rate", is_open=is_open, detail=f"rate {key!r}: {used}, and {_ahead(before)} ahead", numbers=numbers)


def circuit_gate(row: Row, circuit: Row) -> Gate:
    task, failures, until, probe = bare(row["task"]), circuit["failures"], circuit["open_until"], circuit["probe_id"]
    return Gate(
        "circuit",
        is_open=bool(row["is_probe"]),
        detail=f"the circuit of the task {task!r} is open until {_iso(until)}, after {failures} failures in a row",
        numbers={"failures": failures, "open_until": until, "probe": None if probe is None else str(probe)},
    )


def running_gate(row: Row, worker: Row | None) -> Gate:
    """Of a running run."""
    name, is_alive = (str(row["worker_id"]), False) if worker is None else (worker["name"], worker["is_alive"])
    seconds = (row["at"] - row["started_at"]).total_seconds() if row["started_at"] else 0.0
    if row["cancel"] is not None:
        return Gate("cancel", is_open=False, detail=f"runs on {name}, and is being cancelled")
    if not is_alive:
        detail = f"its worker {name} no longer responds; another worker will run it"
        return Gate("worker", is_open=False, detail=detail)
    detail = f"runs on {name} for {seconds:.1f} s"
    return Gate("worker", is_open=True, detail=detail, numbers={"worker": name, "seconds": seconds})


def pause_gate(
    kind: str, name: str, reason: str | None, actor: str | None, since: datetime, until: datetime | None
) -> Gate:
    what = "everything" if kind == "everything" else f"{kind} {bare(name)!r}"
    by, because, end = (
        f" by {actor}" if actor else "",
        f" because {reason}" if reason else "",
        f" until {_iso(until)}" if until else "",
    )
    numbers = {"kind": kind, "name": bare(name), "reason": reason, "actor": actor, "since": since, "until": until}
    return Gate(
        "pause", is_open=False, detail=f"{what} has been paused since {_iso(since)}{by}{because}{end}", numbers=numbers
    )


def queue_limit_gate(line: Row) -> Gate:
    most, running = line["max_running"], line["running"]
    number = _running(running) if most is None else f"{running} of at most {_running(most)}"
    return Gate(
        "queue_limit",
        is_open=most is None or running < most,
        detail=f"{number} in its queue",
        numbers={"limit": most, "running": running},
    )


def worker_gate(line: Row, queue: str, task: str) -> Gate:
    queue, task = bare(queue), bare(task)
    serving, knowing, slots, busy = line["serving"], line["knowing"], int(line["slots"]), int(line["busy"])
    numbers = {
        "serving": serving,
        "knowing": knowing,
        "draining": line["draining"],
        "slots": slots,
        "busy": busy,
        "workers": line["workers"] or [],
    }
    if serving == 0:
        return Gate("worker", is_open=False, detail=f"no live worker serves the queue {queue!r}", numbers=numbers)
    if task and knowing == 0:
        return Gate(
            "worker",
            is_open=False,
            detail=f"no live worker of the queue {queue!r} knows the task {task!r}",
            numbers=numbers,
        )
    if task and busy >= slots:
        detail = (
            f"all {slots} slots of {knowing} workers are busy" if slots else "the workers that know it are draining"
        )
        return Gate("worker", is_open=False, detail=detail, numbers=numbers)
    return Gate("worker", is_open=True, detail=f"{knowing or serving} live workers can take it", numbers=numbers)


def expiry_gate(row: Row) -> Gate | None:
    if row["expires_at"] is None or row["started_at"] is not None or row["expires_at"] > row["at"]:
        return None
    return Gate("expired", is_open=False, detail=f"did not start by {_iso(row['expires_at'])}, so it is being skipped")


def line_gate(row: Row, line: Row) -> Gate:
    before = line["before"]
    is_next = before == 0 or row["state"] != "ready"
    return Gate(
        "line", is_open=is_next, detail=f"{_ahead(before)} ahead of it in its queue", numbers={"before": before}
    )


def depth_gate(line: Row) -> Gate:
    most, ready = line["max_depth"], line["before"]
    detail = f"{ready} runs are ready" if most is None else f"{ready} of {most} runs are ready"
    return Gate("depth", is_open=most is None or ready < most, detail=detail, numbers={"limit": most, "ready": ready})


def tick_gate(
    tick_at: datetime, until_at: datetime | None, outcome: str, decided_at: datetime, blocked_by: UUID | None
) -> Gate:
    """Explains why the last tick of a job created no run."""
    until = "" if until_at is None else f" to {_iso(until_at)}"
    why = f": no scheduler node was running until {_iso(decided_at)}" if outcome == "missed" else ""
    return Gate(
        "tick",
        is_open=True,
        detail=f"its last tick, {_iso(tick_at)}{until}, became no run: {outcome}{why}",
        numbers={"tick_at": tick_at, "decided_at": decided_at, "reason": outcome}
        | ({} if blocked_by is None else {"blocked_by": str(blocked_by)}),
    )


def overdue_tick_gate(fire_at: datetime, now: datetime, schedulers: int) -> Gate:
    """Of a job whose tick is overdue because no scheduler fires it."""
    because = "no scheduler node is alive" if schedulers == 0 else "the scheduler nodes are behind"
    seconds = (now - fire_at).total_seconds()
    return Gate(
        "scheduler",
        is_open=False,
        detail=f"was due at {_iso(fire_at)}, {seconds:.0f} s ago, and has not been fired: {because}",
        numbers={"fire_at": fire_at, "late_seconds": seconds, "schedulers": schedulers},
    )


def job_gate(job: RecurringJob) -> Gate:
    """The job's own gate: a pause, its next tick, or its end."""
    if job.paused_at is not None:
        until = f" until {_iso(job.paused_until)}" if job.paused_until else ""
        because = f" because {job.paused_reason}" if job.paused_reason else ""
        return Gate("pause", False, f"has been paused since {_iso(job.paused_at)}{because}{until}")
    if job.runs_left == 0:
        return Gate("ended", False, "has had all its runs")
    if job.fire_at is not None:
        return Gate(
            "due",
            False,
            f"is next due at {_iso(job.fire_at)}",
            {"next_at": job.next_at, "fire_at": job.fire_at},
        )
    if not job.schedule.has_ticks:
        return Gate(
            "dependencies",
            False,
            f"is fired when all of these have succeeded: {', '.join(bare(name) for name in job.schedule.after or ())}",
        )
    return Gate("ended", False, "has no further tick")


def _ahead(before: int) -> str:
    many = f"{before} or more" if before >= COUNT_MAX else str(before)
    return "no run is" if before == 0 else "1 run is" if before == 1 else f"{many} runs are"


def _running(number: int) -> str:
    return "1 run is running" if number == 1 else f"{number} runs are running"


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
