"""Explains why a run or a queue waits: each gate between it and its start, with its numbers."""

from __future__ import annotations

import shlex
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from foliot.model.checkpoint import Awaits, describe
from foliot.model.concurrency import Concurrency
from foliot.model.explanation import Explanation, Gate, summed_up
from foliot.model.namespace import bare, bare_key
from foliot.model.rate_limit import RateLimit
from foliot.model.run import RunOptions
from foliot.store import queries
from foliot.store.postgres import Database, Record

COUNT_MAX = 10_000
SHOWN = 10
MADE_LATE = timedelta(seconds=1)
decode_options = msgspec.json.Decoder(RunOptions).decode
decode_awaits = msgspec.json.Decoder(Awaits).decode


class Explain:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("explain")

    async def run(self, run_id: UUID) -> Explanation | None:
        """Returns None if there is no live run with this id."""
        row = await self._database.fetch_row(self._queries["explain_run"], run_id=run_id, now=self._now())
        if row is None:
            return None
        options = decode_options(row["options"]) if row["options"] else RunOptions()
        kind = row["task"] if row["is_parent"] else "run"
        if row["is_parent"]:
            gates = [await self._children(row)]
        elif row["state"] == "running":
            gates = [await self._worker(row)]
        else:
            gates = await self._gates(row, options)
        summary = summed_up(gates, "it may start at any moment: it is next in its queue")
        return Explanation(str(row["id"]), kind, row["name"] or row["step"], row["state"], summary, gates)

    async def queue(self, name: str, task: str = "") -> Explanation:
        row = await self._line(name, task, COUNT_MAX * 2**40)
        pauses = await self._pauses(name, task)
        gates = [*pauses, _queue_limit(row), _served(row, name, task), _depth(row)]
        return Explanation(
            bare(name),
            "queue",
            bare(name),
            "paused" if pauses else "active",
            summed_up(gates, f"{row[3]} of its runs are ready"),
            gates,
        )

    async def _gates(self, row: Record, options: RunOptions) -> list[Gate]:
        """The gates in the order in which a run passes them."""
        gates = [
            _cancelled(row),
            await self._dependencies(row),
            _conditional(row, options),
            None if row["awaits"] else _due(row),
            _signalled(row, options),
            _suspended(row),
            await self._overlap(row),
        ]
        if options.concurrency is not None:
            gates.append(await self._concurrency(row, options.concurrency))
        if options.rate is not None:
            gates.append(await self._rate(row, options.rate))
        gates += await self._pauses(row["queue"], row["task"])
        gates.append(await self._circuit(row))
        line = await self._line(row["queue"], row["task"], row["rank"])
        gates += [_queue_limit(line), _served(line, row["queue"], row["task"]), _expired(row), _place(row, line)]
        return [gate for gate in gates if gate is not None]

    async def _dependencies(self, row: Record) -> Gate | None:
        if row["state"] != "waiting" or row["awaits"]:
            return None
        before = await self._database.fetch(self._queries["explain_upstream"], run_id=row["id"], limit=SHOWN)
        shown = [{"id": str(found[0]), "name": found[1], "state": found[2], "since": found[3]} for found in before]
        names = ", ".join(f"{found[1]} ({found[2]})" for found in before[:3]) or "a run that has just ended"
        more = f" and {row['unmet'] - 3} more" if (row["unmet"] or 0) > 3 else ""
        number = f"{row['unmet']} upstream {'run' if row['unmet'] == 1 else 'runs'}"
        detail = f"waits for {number}, with the rule {row['rule']}: {names}{more}"
        return Gate(
            "dependencies",
            is_open=False,
            detail=detail,
            numbers={"unmet": row["unmet"], "rule": row["rule"], "upstream": shown},
        )

    async def _children(self, row: Record) -> Gate:
        open_ones = await self._database.fetch(self._queries["explain_children"], run_id=row["id"], limit=SHOWN)
        names = ", ".join(f"{found[1]} ({found[2]})" for found in open_ones[:3])
        shown = [{"id": str(found[0]), "name": found[1], "state": found[2], "since": found[3]} for found in open_ones]
        return Gate("children", is_open=False, detail=f"waits for its children: {names}", numbers={"open": shown})

    async def _overlap(self, row: Record) -> Gate | None:
        if row["held_by"] != "overlap":
            return None
        other = await self._database.fetch_row(self._queries["explain_overlap"], job_id=row["job_id"], run_id=row["id"])
        if other is None:
            return Gate("overlap", is_open=True, detail="the previous run has ended")
        detail = f"waits for the previous run {other[0]}, which is {other[1]}"
        return Gate("overlap", is_open=False, detail=detail, numbers={"blocked_by": str(other[0])})

    async def _concurrency(self, row: Record, limit: Concurrency) -> Gate:
        found = await self._database.fetch_row(
            self._queries["explain_concurrency"], key=limit.key, rank=row["rank"], most=COUNT_MAX
        )
        taken, holders, before = found if found is not None else (0, [], 0)
        numbers = {
            "key": bare_key(limit.key),
            "limit": limit.limit,
            "taken": taken,
            "before": before,
            "held_by": [str(holder) for holder in holders],
        }
        is_open = row["held_by"] != "limit" or taken + before < limit.limit
        detail = f"key {bare_key(limit.key)!r}: {taken} of {limit.limit} places are taken, and {before} runs are ahead"
        return Gate("concurrency", is_open=is_open, detail=detail, numbers=numbers)

    async def _rate(self, row: Record, limit: RateLimit) -> Gate:
        found = await self._database.fetch_row(
            self._queries["explain_rate"],
            key=limit.key,
            period_seconds=limit.period_seconds,
            rank=row["rank"],
            most=COUNT_MAX,
            now=self._now(),
        )
        started, free_at, before = found if found is not None else (0, None, 0)
        key = bare_key(limit.key)
        numbers = {"key": key, "limit": limit.limit, "started": started, "before": before, "free_at": free_at}
        is_open = row["held_by"] != "limit" or started + before < limit.limit
        used = f"{started} of {limit.limit} starts in {limit.period_seconds:g} s are used"
        detail = f"rate {key!r}: {used}, and {before} runs are ahead"
        return Gate("rate", is_open=is_open, detail=detail, numbers=numbers)

    async def _pauses(self, queue: str, task: str) -> list[Gate]:
        rows = await self._database.fetch(self._queries["explain_pauses"], queue=queue, task=task, now=self._now())
        return [_paused(*row) for row in rows]

    async def _circuit(self, row: Record) -> Gate | None:
        found = await self._database.fetch_row(self._queries["explain_circuit"], task=row["task"])
        if found is None:
            return None
        detail = (
            f"the circuit of the task {bare(row['task'])!r} is open until {_iso(found[1])}, after {found[0]} failures "
            "in a row"
        )
        numbers = {"failures": found[0], "open_until": found[1], "probe": None if found[2] is None else str(found[2])}
        return Gate("circuit", is_open=bool(row["is_probe"]), detail=detail, numbers=numbers)

    async def _line(self, queue: str, task: str, rank: int) -> Record:
        return await self._database.fetch_row(
            self._queries["explain_queue"], queue=queue, task=task, rank=rank, most=COUNT_MAX, now=self._now()
        )

    async def _worker(self, row: Record) -> Gate:
        found = await self._database.fetch_row(
            self._queries["explain_worker"], worker_id=row["worker_id"], now=self._now()
        )
        name, lives = found if found is not None else (str(row["worker_id"]), False)
        seconds = (row["at"] - row["started_at"]).total_seconds() if row["started_at"] else 0.0
        if row["cancel"] is not None:
            return Gate("cancel", is_open=False, detail=f"runs on {name}, and is being cancelled")
        if not lives:
            return Gate(
                "worker",
                is_open=False,
                detail=f"its worker {name} no longer responds; another worker will run it",
            )
        return Gate(
            "worker",
            is_open=True,
            detail=f"runs on {name} for {seconds:.1f} s",
            numbers={"worker": name, "seconds": seconds},
        )

    def _now(self) -> datetime | None:
        return self._database.clock.sql_now()


def _cancelled(row: Record) -> Gate | None:
    return (
        None if row["cancel"] is None else Gate("cancel", is_open=False, detail="was cancelled, and ends in a moment")
    )


def _due(row: Record) -> Gate:
    if row["state"] != "scheduled":
        return _overdue(row)
    wait: timedelta = row["due_at"] - row["at"]
    why = f"attempt {row['attempt'] + 1} is" if row["attempt"] else "is"
    numbers = {"due_at": row["due_at"], "seconds": max(0.0, wait.total_seconds())}
    return Gate(
        "due", is_open=wait.total_seconds() <= 0, detail=f"{why} not due until {_iso(row['due_at'])}", numbers=numbers
    )


def _overdue(row: Record) -> Gate:
    seconds = (row["at"] - row["due_at"]).total_seconds()
    if row["held_by"] == "signal" or seconds < 0:
        return Gate("due", is_open=True, detail="is due")
    detail, numbers = f"has been due since {_iso(row['due_at'])}", {"due_at": row["due_at"], "late_seconds": seconds}
    # A run that was created long after its tick is still due at the tick's time.
    if row["job_id"] is not None and row["created_at"] - row["due_at"] >= MADE_LATE:
        detail += f"; no scheduler node was running to create it before {_iso(row['created_at'])}"
        numbers["made_at"] = row["created_at"]
    return Gate("due", is_open=True, detail=detail, numbers=numbers)


def _conditional(row: Record, options: RunOptions) -> Gate | None:
    if options.condition is None:
        return None
    when = options.condition.when
    if row["state"] == "waiting":
        return Gate("condition", is_open=False, detail=f"is skipped then unless {when}")
    if row["held_by"] == "condition":
        return Gate("condition", is_open=False, detail=f"a scheduler node is about to decide whether {when}")
    return Gate("condition", is_open=True, detail=f"its condition is true: {when}")


def _signalled(row: Record, options: RunOptions) -> Gate | None:
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


def _suspended(row: Record) -> Gate | None:
    if row["awaits"] is None:
        return None
    awaits = decode_awaits(row["awaits"])
    detail = describe(awaits, None if awaits.until is None else _iso(awaits.until))
    if awaits.signals:
        detail += f": foliot signal {row['id']} {shlex.quote(awaits.signals[0])}, or POST /v1/runs/{row['id']}/signal"
    return Gate("function", is_open=False, detail=f"its function {detail}", numbers=msgspec.to_builtins(awaits))


def _paused(
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


def _queue_limit(line: Record) -> Gate:
    most, running = line[0], line[2]
    detail = f"{_runs(running)} in its queue" if most is None else f"{running} of at most {_runs(most)} in its queue"
    return Gate(
        "queue_limit",
        is_open=most is None or running < most,
        detail=detail,
        numbers={"limit": most, "running": running},
    )


def _served(line: Record, queue: str, task: str) -> Gate:
    queue, task = bare(queue), bare(task)
    serving, knowing, draining, slots, running, names = line[4:10]
    numbers = {
        "serving": serving,
        "knowing": knowing,
        "draining": draining,
        "slots": int(slots),
        "busy": int(running),
        "workers": names or [],
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
    if task and running >= slots:
        detail = (
            f"all {int(slots)} slots of {knowing} workers are busy"
            if slots
            else "the workers that know it are draining"
        )
        return Gate("worker", is_open=False, detail=detail, numbers=numbers)
    return Gate("worker", is_open=True, detail=f"{knowing or serving} live workers can take it", numbers=numbers)


def _expired(row: Record) -> Gate | None:
    if row["expires_at"] is None or row["started_at"] is not None or row["expires_at"] > row["at"]:
        return None
    return Gate("expired", is_open=False, detail=f"did not start by {_iso(row['expires_at'])}, so it is being skipped")


def _place(row: Record, line: Record) -> Gate:
    before = line[3]
    many = f"{before} or more" if before >= COUNT_MAX else str(before)
    ahead = "no run is" if before == 0 else "1 run is" if before == 1 else f"{many} runs are"
    is_next = before == 0 or row["state"] != "ready"
    return Gate("line", is_open=is_next, detail=f"{ahead} ahead of it in its queue", numbers={"before": before})


def _depth(line: Record) -> Gate:
    most, ready = line[1], line[3]
    detail = f"{ready} runs are ready" if most is None else f"{ready} of {most} runs are ready"
    return Gate("depth", is_open=most is None or ready < most, detail=detail, numbers={"limit": most, "ready": ready})


def _runs(number: int) -> str:
    return "1 run is running" if number == 1 else f"{number} runs are running"


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
