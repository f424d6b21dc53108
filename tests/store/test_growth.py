"""What is asked again and again reads a handful of rows, however much is stored: future runs, schedules, keys, all that is not due yet."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.model.fingerprint import WORKER_LOST_PATTERN
from foliot.model.ids import SHARDS, new_id
from foliot.store.store import Store
from tests.support.plans import rows_read

STORED = 5000
WORKER = new_id()
FILL = """
insert into foliot.runs (id, created_at, due_at, expires_at, rank, state, held_by, queue, task, worker_id)
select gen_random_uuid(), now(), due, due + interval '1 day', n, state, held_by, 'default', 't',
    case when state = 'running' then $2::uuid end
from generate_series(1, $1::bigint) n, (
    values
        ('scheduled', null, now() + interval '1 day'), ('held', 'signal', now() + interval '1 day'), ('held', 'limit', now()),
        ('held', 'no_worker', now()), ('ready', null, now()), ('running', null, now())
) as kinds (state, held_by, due);
"""
JOBS = """
insert into foliot.jobs (
    id, created_at, updated_at, next_at, fire_at, paused_at, paused_until, shard, priority, name, task, queue, schedule, calendar_version
)
select gen_random_uuid(), now(), now(), tomorrow, case when not is_paused then tomorrow end, case when is_paused then now() end,
    case when is_paused then tomorrow end, n % 100, 0, 'job ' || n || is_paused, 't', 'default',
    '{"cron": "@daily", "calendar": "holidays"}', 1
from generate_series(1, $1::bigint) n, (values (true), (false)) as kinds (is_paused), (select now() + interval '1 day' as tomorrow) as time
"""
KEYS = """
insert into foliot.idempotency (key, fingerprint, answer, expires_at)
select 'key ' || n, '', 'null', now() + interval '1 day' from generate_series(1, $1::bigint) n
"""
ASKED = {
    ("runs", "promote_due_runs"): (1000, None),
    ("runs", "seconds_until_due"): (None,),
    ("runs", "ready_queues"): (100,),
    ("runs", "expire_runs"): (1000, None),
    ("runs", "lose_runs"): (1000, 3, None, WORKER_LOST_PATTERN),
    ("runs", "close_cancelled"): (1000, None),
    ("runs", "claim_runs"): (["default"], [10], ["t"], WORKER, None, False),
    ("workflows", "time_out_signals"): (1000, None),
    ("jobs", "due_jobs"): (list(range(SHARDS)), 1000, 2.0, None),
    ("jobs", "stale_jobs"): (1000,),
    ("jobs", "waits_in_use"): (None,),
    ("jobs", "jobs_to_resume"): (None,),
    ("gates", "gates_in_use"): (None,),
    ("submissions", "forget_answers"): (1000, None),
}


@pytest.fixture
async def full(store: Store, sql: Any) -> Any:
    await store.workers.register_worker(WORKER, "w", {"default": 10}, ["t"])
    await sql.execute("insert into foliot.calendars (name, created_at, updated_at, days) values ('holidays', now(), now(), '{}')")
    await sql.execute(FILL, STORED, WORKER)
    await sql.execute(JOBS, STORED)
    await sql.execute(KEYS, STORED)
    await sql.execute("vacuum analyze")
    return sql


async def test_what_is_not_due_is_not_read(full: Any) -> None:
    read = {name: await rows_read(full, family, name, *arguments) for (family, name), arguments in ASKED.items()}
    assert {name: rows for name, rows in read.items() if rows > 500} == {}
    # There is something in the tables that they could have read.
    assert await full.fetchval("select count(*) from foliot.runs") == 6 * STORED


async def test_starts_of_a_rate_are_counted_once_however_many_wait_for_it(store: Store, sql: Any) -> None:
    rate = '{"rate": {"key": "k", "limit": 2000, "period_seconds": 3600}}'
    await sql.execute("insert into foliot.rate_starts (rate_key, started_at) select 'k', now() from generate_series(1, 1990)")
    await sql.execute(
        """
        insert into foliot.runs (id, created_at, due_at, rank, state, held_by, queue, task, options)
        select gen_random_uuid(), now(), now(), n, 'held', 'limit', 'default', 't', $1::jsonb from generate_series(1, 1000) n
        """,
        rate,
    )
    await sql.execute("vacuum analyze")
    assert await rows_read(sql, "gates", "admit_runs", None, 1000) < 10_000
    assert await store.gates.admit_runs() == (["default"] * 10, [])
