"""Rows that the scheduler's services change or delete still qualify under the lock that they hold.

Each statement meets a transaction that changes the row it is about to touch, in the two orders that matter: either the
other transaction holds the row when the statement arrives, or it commits after the statement has taken its snapshot and
before it reaches the row.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

import foliot.scheduler
from foliot.model.failure_fingerprint import WORKER_LOST_PATTERN
from foliot.store import queries
from tests.support.queries import query_named
from tests.support.waiting import PATIENCE_SECONDS, until

RUN, OTHER, WORKER, NODE = (f"00000000-0000-7000-8000-00000000000{n}" for n in range(4))
PAUSING = 4711
LATE = f"""
create function pg_temp.late(given anyelement) returns anyelement language plpgsql volatile as $$
begin
    perform pg_advisory_lock_shared({PAUSING});
    perform pg_advisory_unlock_shared({PAUSING});
    return given;
end
$$
"""


def run(state: str, held_by: str | None = None, *, run_id: str = RUN, **columns: str) -> str:
    """SQL that inserts a run; the values of columns are SQL."""
    reason = f"'{held_by}'" if held_by else "null"
    given = {
        "id": f"'{run_id}'",
        "created_at": "now()",
        "due_at": "now()",
        "rank": "1",
        "state": f"'{state}'",
        "held_by": reason,
    }
    given |= {"queue": "'q'", "task": "'t'", "worker_id": f"'{WORKER}'" if state == "running" else "null"} | columns
    return f"insert into foliot.runs ({', '.join(given)}) values ({', '.join(given.values())});"


def change(assignments: str) -> str:
    return f"update foliot.runs set {assignments} where id = '{RUN}'"


def is_now(condition: str) -> str:
    return f"select exists (select from foliot.runs where id = '{RUN}' and {condition})"


def worker(expires: str, tasks: str = "{t}") -> str:
    return (
        "insert into foliot.workers (id, name, queues, tasks, started_at, beat_at, expires_at)"
        f" values ('{WORKER}', 'w', '{{\"q\": 1}}', '{tasks}', now(), now(), now() + interval '{expires}');"
    )


def job(**columns: str) -> str:
    given = {
        "id": f"'{OTHER}'",
        "created_at": "now()",
        "updated_at": "now()",
        "shard": "0",
        "priority": "0",
        "name": "'j'",
        "task": "'t'",
    }
    given |= {"queue": "'q'", "schedule": "'{}'"} | columns
    return f"insert into foliot.jobs ({', '.join(given)}) values ({', '.join(given.values())});"


CANCEL = """cancel = '{"reason": "cancelled", "is_forced": false}'"""
BEAT = f"update foliot.workers set expires_at = now() + interval '1 minute' where id = '{WORKER}'"
CLAIM = f"state = 'running', worker_id = '{WORKER}', started_at = now(), token = token + 1"
KEYED = """'{"concurrency": {"key": "k", "limit": 1, "at_limit": "wait"}}'"""
FULL = KEYED.replace('"k"', '"full"')
OUSTING = KEYED.replace("wait", "cancel_old")
OPEN_CIRCUIT = (
    "insert into foliot.circuits (task, failures, open_until, updated_at) values ('t', 5, now() - interval "
    "'1 second', now());"
)
PROBED = worker("1 minute") + OPEN_CIRCUIT + run("ready")
EXPIRED = run("ready", expires_at="now() - interval '1 second'")
OWNED = (
    f"update foliot.shards set owner_id = '{NODE}', epoch = 1, expires_at = now() + interval '1 minute' where id = 0;"
)
ADMITTING = (None, 500, 200, 20, "", "")


@dataclass(frozen=True)
class Race:
    statement: str
    """Family and name."""
    arguments: tuple[object, ...]
    before: str
    meanwhile: str
    """The change that another transaction makes to the same row."""
    wanted: str
    """A query that is true if the statement has respected the change."""
    waits_at: str = "clock_timestamp()"
    """The first place in the statement that is evaluated after its snapshot."""

    def __str__(self) -> str:
        return f"{self.statement} / {self.meanwhile[:60]}"


RACES = [
    Race(
        "idempotency/forget_answers", (10, None),
        "insert into foliot.idempotency values ('k', 'old', 'null', now() - interval '1 second');",
        "update foliot.idempotency set fingerprint = 'new', expires_at = now() + interval '1 day'",
        "select exists (select from foliot.idempotency where fingerprint = 'new')",
    ),
    Race(
        "workflows/forget_parents", (10, datetime(2100, 1, 1, tzinfo=UTC)),
        "insert into foliot.parents (id, root_id, run_id, kind, created_at, finished_at, on_failure, total, "
        f"next_index, capacity) values ('{RUN}', '{RUN}', '{RUN}', 'workflow', now(), now() - interval '40 days', "
        f"'continue', 1, 1, 1); insert into foliot.map_items values ('{RUN}', 1, '1');",
        f"update foliot.parents set run_id = '{OTHER}', finished_at = null",
        "select (select count(*) from foliot.parents) = 1 and (select count(*) from foliot.map_items) = 1",
        "$1::bigint",
    ),
    Race(
        "pauses/end_pauses", (None,),
        "insert into foliot.pauses (kind, name, paused_at, until_at) values ('queue', 'q', now(), now() - interval '1 "
        "second');",
        "update foliot.pauses set until_at = now() + interval '1 hour'",
        "select exists (select from foliot.pauses)",
    ),
    Race(
        "workers/shorten_leases", (None,), worker("1 minute") + "update foliot.workers set beat_at = now() + interval "
        "'1 hour';",
        BEAT.replace("set ", "set beat_at = now(), "), "select expires_at > now() + interval '30 seconds' from "
        "foliot.workers",
    ),
    Race("workers/remove_dead_workers", (None,), worker("-1 second"), BEAT, "select exists (select from "
    "foliot.workers)"),
    Race(
        "shards/remove_dead_schedulers", (None,),
        f"insert into foliot.schedulers values ('{NODE}', 'n', now(), now() - interval '1 hour');",
        "update foliot.schedulers set expires_at = now() + interval '1 minute'",
        "select exists (select from foliot.schedulers)",
    ),
    Race(
        "shards/take_shards", (NODE, 10.0, None, None, []),
        "update foliot.shards set owner_id = null, expires_at = null; update foliot.shards set owner_id ="
        f" '{OTHER}', expires_at = now() - interval '1 second' where id = 0;",
        "update foliot.shards set expires_at = now() + interval '1 minute' where id = 0",
        f"select owner_id = '{OTHER}' from foliot.shards where id = 0",
    ),
    Race(
        "shards/give_up_surplus", (NODE, 10.0, None, None),
        f"insert into foliot.schedulers select gen_random_uuid(), 'n', now(), now() + interval '1 hour' from "
        f"generate_series(1, 200); update foliot.shards set owner_id = '{NODE}', epoch = 1, expires_at = now() + "
        f"interval '1 minute' where id in (0, 1);",
        f"update foliot.shards set owner_id = '{OTHER}' where id in (0, 1)",
        f"select bool_and(owner_id = '{OTHER}') from foliot.shards where id in (0, 1)",
    ),
    Race(
        "shards/mark_zones", (0, NODE, 1, "new"), OWNED, "update foliot.shards set epoch = 2 where id = 0",
        "select zones is null from foliot.shards where id = 0", "$4::text",
    ),
    Race("expiry/expire_runs", (10, None), EXPIRED, change(CLAIM), is_now("state = 'running'")),
    Race(
        "expiry/expire_runs", (10, None), EXPIRED,
        change("expires_at = now() + interval '1 hour'"), is_now("state = 'ready'"),
    ),
    Race(
        "due_runs/promote_due_runs", (10, None), run("scheduled"), change("due_at = now() + interval '1 hour'"),
        is_now("state = 'scheduled'"),
    ),
    Race(
        "signals/time_out_signals", (10, None), run("held", "signal"), change("signal = '{}', state = 'ready', "
        "held_by = null"),
        is_now("signal = '{}' and state = 'ready'"),
    ),
    Race(
        "cancellation/close_cancelled", (10, None), run("ready") + change(CANCEL) + ";", change(f"cancel = null, "
        f"{CLAIM}"),
        is_now("state = 'running'"), "$1::bigint",
    ),
    Race(
        "lost_runs/lose_runs", (10, 3, None, WORKER_LOST_PATTERN), worker("-1 second") + run("running"), BEAT,
        is_now("state = 'running'"),
    ),
    Race(
        "lost_runs/lose_runs", (10, 3, None, WORKER_LOST_PATTERN), run("running"), change("state = 'scheduled', "
        "worker_id = null"),
        is_now("state = 'scheduled'"), "$1::bigint",
    ),
    Race(
        "overlap/release_held", (NODE, [0], [1], None), OWNED + job() + run("held", "overlap", job_id=f"'{OTHER}'",
            tick_at="now()"),
        change(CANCEL), is_now("state = 'held'"),
    ),
    Race(
        "replanning/replan_job", (OTHER, 1, None, None, None, None, 7), job(), "update foliot.jobs set version = 2",
        "select calendar_version is null from foliot.jobs", "$7::bigint",
    ),
    Race(
        "jobs/resume_job", (OTHER, 1, None, None, None, None, None, None, None, datetime(1970, 1, 1, tzinfo=UTC), None),
        job(paused_at="'epoch'"), "update foliot.jobs set paused_at = now()",
        "select paused_at is not null from foliot.jobs", "$3::timestamptz",
    ),
    Race(
        "cancellation/spread_cancels", (),
        run("waiting") + change(CANCEL) + ";" + run("ready", run_id=OTHER, parent_id=f"'{RUN}'")
        + "insert into foliot.parents (id, root_id, run_id, kind, created_at, on_failure, total, next_index, capacity)"
        f" values ('{RUN}', '{RUN}', '{RUN}', 'workflow', now(), 'continue', 1, 1, 1);",
        f"""update foliot.runs set cancel = '{{"is_forced": true}}' where id = '{OTHER}'""",
        f"select cancel ->> 'is_forced' = 'true' from foliot.runs where id = '{OTHER}'", "'always'",
    ),
    Race(
        "conditions/pass_conditions", ([UUID(RUN)], None), run("held", "condition"), change(CANCEL),
        is_now("state = 'held'"),
    ),
    Race(
        "conditions/close_conditional", ([UUID(RUN)], ["skipped"], ["condition"], [None], [""], None),
        run("held", "condition"), change(CANCEL), is_now("state = 'held'"), "$1::uuid[]",
    ),
    Race("checkpoints/wake_run", (RUN, None), run("scheduled", awaits="'{}'"), change(CLAIM),
        is_now("state = 'running'")),
    Race("limits/admit_runs", ADMITTING, run("held", "limit", options=KEYED), change(CANCEL), is_now("state = 'held'")),
    Race(
        "limits/admit_runs", ADMITTING, run("held", "limit", options=KEYED),
        change("options = '{\"signal\": {}}', held_by = 'signal'"), is_now("held_by = 'signal'"),
    ),
    Race(
        "limits/admit_runs", ADMITTING, run("held", "limit", options=KEYED) + run("running", run_id=OTHER,
            options=FULL),
        change("options = " + FULL), is_now("state = 'held'"),
    ),
    Race(
        "limits/settle_full_keys", (["k"], 10), run("running", options=OUSTING) + run("held", "limit", run_id=OTHER,
            options=OUSTING),
        change("state = 'scheduled', worker_id = null"), is_now("cancel is null"), "$1::text[]",
    ),
    Race(
        "parked_runs/park_runs", (None, 10, 1), PROBED, change("is_probe = true"),
        is_now("state = 'ready' and is_probe"),
    ),
    Race("parked_runs/park_runs", (None, 10, 1), PROBED, change(CLAIM), is_now("state = 'running'")),
    Race(
        "parked_runs/park_runs", (None, 10, 1), worker("1 minute", "{t,u}") + OPEN_CIRCUIT + run("ready"),
        change("task = 'u'"),
        is_now("state = 'ready'"),
    ),
    Race(
        "parked_runs/park_runs", (None, 10, 1), PROBED, change(f"options = {KEYED}"),
        is_now("state = 'ready'"),
    ),
    Race(
        "parked_runs/unpark_runs", (None, 10), worker("1 minute", "{t,u}") + run("held", "pause"),
        change("task = 'u', held_by = 'circuit'"),
        is_now("state = 'held'"),
    ),
    Race(
        "sources/hold_sources", (WORKER, 20.0, 100, None),
        """insert into foliot.sources (name, definition, created_at, updated_at, expires_at)
        values ('s', '{"kind": "redis", "task": "t"}', now(), now(), now() - interval '1 second');""",
        f"update foliot.sources set owner = '{OTHER}', expires_at = now() + interval '1 minute'",
        f"select exists (select from foliot.sources where owner = '{OTHER}')",
    ),
    Race("circuit_breaker/send_probes", (None, 10.0, 100), PROBED, change(CLAIM), is_now("is_probe is null")),
    Race("circuit_breaker/send_probes", (None, 10.0, 100), PROBED, change(CANCEL), is_now("is_probe is null")),
    Race(
        "circuit_breaker/send_probes", (None, 10.0, 100), PROBED,
        "update foliot.circuits set open_until = now() + interval '1 hour', probe_id = null", is_now("is_probe is "
        "null"),
    ),
    # The old probe is in a paused queue, and is claimed at the moment when another one replaces it.
    Race(
        "circuit_breaker/send_probes", (None, 10.0, 100),
        worker("1 minute") + OPEN_CIRCUIT + run("ready", queue="'paused'", is_probe="true") + run("ready", run_id=OTHER)
        + f"update foliot.circuits set probe_id = '{RUN}', probe_at = now();",
        change(CLAIM), f"select is_probe is null from foliot.runs where id = '{OTHER}'",
    ),
]  # fmt: skip
SAFE = {
    "forget_rate_starts": "its rows are never changed, but for those in the future, which it does not touch",
    "shorten_leases": "what was renewed in the future is locked, looked at again under the lock, and changed in the "
    "same statement",
    "count_again": "counting again gives the right number, whether or not it was wrong before",
    "link_runs": "a function that locks each link before it looks at it",
    "forget_sessions": "the end of a session is set when it begins, and never moves",
    "fire_ticks": "compares version and cursor with those of the row that it moves; see test_firer.py",
    "beat_scheduler": "renews what is its own, by the condition on the row itself",
    "delete_logs": "an output that history or an attempt has kept is never taken away again",
    "keep_lost_outputs": "an attempt that was lost stays lost, and `output is null` is a condition on the row itself",
    "forget_checkpoints": "a run that is no longer known never comes back",
    "forget_gone_workers": "a worker that is gone never comes back, and the instant of a row never moves",
    "forget_replays": "a replay that has ended never changes",
    "forget_rollups": "the instant of a row never moves",
    "forget_versions": "a job that was deleted before retention began is listed nowhere, so nobody restores it",
    "release_sources": "frees what is its own, by the condition on the row itself",
    "note_source": "what it notes does not depend on the row",
    "end_sessions": "each condition is on the row itself, and a worker that renews its lease changes that row",
    "leave": "frees what is its own, by the condition on the row itself",
}


@pytest.fixture
async def sessions(database_url: str) -> AsyncIterator[tuple[Any, Any, Any]]:
    """A session that changes a row, one that runs the statement, and one that observes."""
    connected = [await asyncpg.connect(database_url) for _ in range(3)]
    yield connected[0], connected[1], connected[2]
    for session in connected:
        await session.close()


async def is_blocked(looking: Any, waiting: Any, kind: str) -> bool:
    return bool(
        await looking.fetchval(
            "select exists (select from pg_locks where pid = $1 and not granted and locktype = any ($2))",
            waiting.get_server_pid(),
            kind.split(),
        )
    )


@pytest.mark.parametrize("race", RACES, ids=str)
async def test_a_locked_row_is_skipped_or_checked_again(sessions: tuple[Any, Any, Any], race: Race) -> None:
    changing, acting, looking = sessions
    await changing.execute(race.before)
    family, name = race.statement.split("/")
    async with changing.transaction():
        assert (await changing.execute(race.meanwhile)).endswith(("1", "2"))
        statement = asyncio.create_task(acting.fetch(queries.load(family)[name].sql, *race.arguments))

        async def is_decided() -> bool:
            return statement.done() or await is_blocked(looking, acting, "transactionid tuple")

        await until(is_decided)
    await statement
    assert await looking.fetchval(race.wanted), "the statement went by what had been true before"


@pytest.mark.parametrize("race", RACES, ids=str)
async def test_a_row_changed_after_the_snapshot_is_checked_again(sessions: tuple[Any, Any, Any], race: Race) -> None:
    changing, acting, looking = sessions
    await changing.execute(race.before)
    await acting.execute(LATE)
    family, name = race.statement.split("/")
    sql = queries.load(family)[name].sql
    assert race.waits_at in sql
    paused = sql.replace(
        race.waits_at, f"pg_temp.late({race.waits_at}{'::text' if race.waits_at.startswith(chr(39)) else ''})"
    )
    await looking.execute(f"select pg_advisory_lock({PAUSING})")
    statement = asyncio.create_task(acting.fetch(paused, *race.arguments))

    async def is_paused() -> bool:
        if statement.done():
            statement.result()
        return await is_blocked(changing, acting, "advisory")

    try:
        await until(is_paused)
        await changing.execute(race.meanwhile, timeout=PATIENCE_SECONDS)
    finally:
        await looking.execute(f"select pg_advisory_unlock({PAUSING})")
        with suppress(asyncio.CancelledError):
            await statement
    assert await looking.fetchval(race.wanted), "the statement went by its snapshot"


def test_every_changing_statement_of_the_scheduler_is_raced() -> None:
    """The names of the store methods that services call, which equal those of the statements."""
    called = set[str]()
    for path in Path(foliot.scheduler.__path__[0]).glob("*.py"):
        called |= set(re.findall(r"\.(\w+)\b", path.read_text(encoding="utf-8")))
    # Statements that these store methods consist of.
    called |= {"spread_cancels", "close_cancelled", "settle_full_keys", "keep_lost_outputs", "delete_logs"}
    changing = {
        name
        for family in (path.stem for path in (Path(queries.__file__).parent / "sql").glob("*.sql"))
        for name, query in queries.load(family).items()
        if name in called and re.search(r"\b(update foliot|delete from|foliot\.link_runs)", query.sql)
    }
    assert changing - {race.statement.split("/")[1] for race in RACES} - SAFE.keys() == set()
    assert changing >= SAFE.keys()


@pytest.mark.parametrize(
    "name",
    [
        "gates_in_use",
        "take_gates",
        "admit_runs",
        "settle_full_keys",
        "send_probes",
        "end_pauses",
        "park_runs",
        "unpark_runs",
    ],
)
def test_every_statement_of_the_gatekeeper_names_its_lock(name: str) -> None:
    comment = "\n".join(line for line in query_named(name).sql.splitlines() if line.startswith("--"))
    assert "-- Lock: " in comment
