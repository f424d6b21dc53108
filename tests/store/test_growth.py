"""Statements that run repeatedly read a handful of rows, however many future runs, schedules and keys are stored."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from foliot.model.failure_fingerprint import WORKER_LOST_PATTERN
from foliot.model.ids import SHARDS, new_id
from foliot.model.namespace import Namespace, bare
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.store import Store
from foliot.store.stuck_runs import FIRST_ID
from tests.support.plans import blocks_read, rows_read

STORED = 5000
WORKER = new_id()
FILL = """
insert into foliot.runs (id, created_at, due_at, expires_at, rank, state, held_by, queue, task, worker_id)
select gen_random_uuid(), now(), due, due + interval '1 day', n, state, held_by, 'default', 't',
    case when state = 'running' then $2::uuid end
from generate_series(1, $1::bigint) n, (
    values
        ('scheduled', null, now() + interval '1 day'), ('held', 'signal', now() + interval '1 day'), ('held', 'limit',
            now()),
        ('held', 'no_worker', now()), ('ready', null, now()), ('running', null, now())
) as kinds (state, held_by, due);
"""
JOBS = """
insert into foliot.jobs (
    id, created_at, updated_at, next_at, fire_at, paused_at, paused_until, shard, priority, name, task, queue,
        schedule, calendar_version
)
select gen_random_uuid(), now(), now(), tomorrow, case when not is_paused then tomorrow end, case
    when is_paused then now() end,
    case when is_paused then tomorrow end, n % 100, 0, 'job ' || n || is_paused, 't', 'default',
    '{"cron": "@daily", "calendar": "holidays"}', 1
from generate_series(1, $1::bigint) n, (values (true), (false)) as kinds (is_paused), (select now() + interval '1 day'
    as tomorrow) as time
"""
KEYS = """
insert into foliot.idempotency (key, fingerprint, answer, expires_at)
select 'key ' || n, '', 'null', now() + interval '1 day' from generate_series(1, $1::bigint) n
"""
STARTS = (
    "insert into foliot.rate_starts (rate_key, started_at) select 'key', now() from generate_series(1, $1::bigint) n"
)
REPLAYS = """
insert into foliot.replays (
    id, namespace, fingerprint, actor, created_at, state, finished_at, old_ids, new_ids, total, apart_seconds,
    keeps_checkpoints, is_repeated
)
select gen_random_uuid(), 'default', 'f' || n, 'ann', now(), 'done', now(), '{}', '{}', 1, 0, false, false
from generate_series(1, $1::bigint) n
"""
VERSIONS = """
insert into foliot.job_versions (job_id, version, made_at, deleted_at, definition)
select gen_random_uuid(), 1, now(), now(), jsonb_build_object('name', 'job ' || n, 'schedule', '{}'::jsonb)
from generate_series(1, $1::bigint) n
"""
GONE = """
insert into foliot.gone_workers (id, name, queues, labels, started_at, gone_at, is_dead)
select gen_random_uuid(), 'w', '{"default": 1}', '{}', now(), now(), false from generate_series(1, $1::bigint)
"""
PARENTS = """
insert into foliot.parents (id, root_id, run_id, kind, created_at, finished_at, on_failure, total, next_index, capacity)
select id, id, id, 'workflow', now(), now(), 'continue', 1, 1, 1
from (select gen_random_uuid() as id from generate_series(1, $1::bigint)) as made
"""
ASKED = {
    ("due_runs", "promote_due_runs"): (1000, None),
    ("due_runs", "seconds_until_due"): (None,),
    ("due_runs", "ready_queues"): (100,),
    ("expiry", "expire_runs"): (1000, None),
    ("lost_runs", "lose_runs"): (1000, 3, None, WORKER_LOST_PATTERN),
    ("cancellation", "close_cancelled"): (1000, None),
    ("claims", "claim_runs"): (["default"], [10], ["t"], WORKER, None, False, []),
    ("workers", "shorten_leases"): (None,),
    ("signals", "time_out_signals"): (1000, None),
    ("ticks", "due_jobs"): (list(range(SHARDS)), 1000, 2.0, None),
    ("replanning", "stale_jobs"): (1000,),
    ("pending_work", "waits_in_use"): (None,),
    ("jobs", "jobs_to_resume"): (None,),
    ("pending_work", "gates_in_use"): (None,),
    ("limits", "forget_rate_starts"): (1000, None),
    ("limits", "settle_full_keys"): (["key 1"], 100),
    ("idempotency", "forget_answers"): (1000, None),
    ("workflows", "forget_parents"): (1000, datetime(2020, 1, 1, tzinfo=UTC)),
    ("pulse", "take_pulse"): (["default"], 50, 50, None),
    ("pulse", "list_changes"): (datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC), FIRST_ID, 50),
    ("pulse", "list_actions"): (datetime(2020, 1, 1, tzinfo=UTC), 50),
    ("attention", "count_late"): ("default", 5.0, list(range(SHARDS)), 50, None),
    ("attention", "count_failed"): ("default", datetime(2020, 1, 1, tzinfo=UTC), 50),
    ("attention", "list_failing_jobs"): ("default", datetime(2020, 1, 1, tzinfo=UTC), 50, 5),
    ("attention", "list_growing_groups"): (
        "default",
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2020, 1, 2, tzinfo=UTC),
        50,
        5,
    ),
    ("attention", "list_everything_paused"): ("default", 50, 5, None),
    ("attention", "longest_approvals"): ("default", 50, 5),
    ("attention", "list_ended_jobs"): ("default", 50, 5),
    ("attention", "due_schedules"): ("default", datetime(2100, 1, 1, tzinfo=UTC), list(range(SHARDS)), 1, 50),
    ("attention", "oldest_ready_queue"): ("default",),
    ("attention", "has_runs"): ("default", 50),
    ("queue_keys", "concurrency_keys"): ("elsewhere", 50, 20, 5, 50, 20),
    ("queue_keys", "rate_keys"): ("elsewhere", 20, 5, 50, 20, None),
    ("queue_keys", "fairness_keys"): ("elsewhere", 50, 20, 50, 20),
    ("queue_keys", "ended_lately"): ("elsewhere", 60.0, 50, None),
    ("task_lists", "task_statistics"): ("default", FIRST_ID, datetime(2020, 1, 1, tzinfo=UTC), 50),
    ("workers", "runs_of_workers"): ([WORKER], "default", 50),
    ("replays", "decide_replays"): (None,),
    ("replays", "take_replay"): (1000, None),
    ("replays", "list_replays"): ("default", None, 50),
    ("gone_workers", "list_gone_workers"): (None, 50),
    ("gone_workers", "forget_gone_workers"): (100, None),
    ("ticks", "list_ticks"): (WORKER, None, None, None, None, 50),
    ("ticks", "ticks_by_cell"): (
        WORKER,
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2100, 1, 1, tzinfo=UTC),
        3600.0,
        50,
    ),
    ("ticks", "list_durations"): (WORKER, 50),
    ("attention", "past_runs"): (WORKER, datetime(2020, 1, 1, tzinfo=UTC), 50),
    ("attention", "job_durations"): ([WORKER], datetime(2020, 1, 1, tzinfo=UTC)),
    ("stuck_runs", "find_stuck"): (FIRST_ID, FIRST_ID, 100, 100),
    ("jobs", "list_calendar_jobs"): ("holidays", "job 4", 50),
    ("job_versions", "list_versions"): (WORKER, None, 50),
    ("job_versions", "find_deleted_job"): (None, "job 9"),
    ("job_versions", "list_deleted_jobs"): ("default", 50, 20),
    ("job_versions", "forget_versions"): (datetime(2020, 1, 1, tzinfo=UTC), 100),
    ("search", "search_names"): ("%no such name%", "default", 6, 200, None),
    ("search", "search_jobs"): ("%no such name%", "default", "", 6, 50),
    ("jobs", "list_jobs"): ("team/", 50, "team"),
    ("pauses", "list_job_pauses"): ("", "default", 50),
    ("approvals", "list_approvals"): (FIRST_ID, 100, 50, "team", 1000),
    ("workflow_graphs", "get_progress"): (new_id(), "default"),
    ("workflow_graphs", "list_changed_steps"): (new_id(), datetime(2020, 1, 1, tzinfo=UTC), None, None),
    ("workflow_graphs", "list_cells"): ([new_id(), new_id()], datetime(2020, 1, 1, tzinfo=UTC)),
    ("jobs", "match_jobs"): ("%", None, None, None, 50, None, "team", None, "team/", 5000),
}


@pytest.fixture
async def full(store: Store, sql: Any) -> Any:
    await store.workers.register_worker(WORKER, "w", {"default": 10}, ["t"])
    await sql.execute(
        "insert into foliot.calendars (name, created_at, updated_at, days) values ('holidays', now(), now(), '{}')"
    )
    await sql.execute(FILL, STORED, WORKER)
    await sql.execute(JOBS, STORED)
    for fill in (KEYS, STARTS, PARENTS, REPLAYS, VERSIONS, GONE):
        await sql.execute(fill, STORED)
    await sql.execute("vacuum analyze")
    return sql


async def test_matching_jobs_are_searched_in_steps(full: Any) -> None:
    fits = {"pattern": ("%9", None, None), "task": (None, "elsewhere", None), "queue": (None, None, "elsewhere")}
    for filters in fits.values():
        assert await rows_read(full, "jobs", "match_jobs", *filters, None, 50, None, "default", None, "", 200) <= 500
        assert (
            await rows_read(full, "jobs", "match_jobs", *filters, None, 50, None, "default", "job 9false", "", 200) <= 2
        )


@pytest.mark.parametrize("many", ["default", "k", "team"])
async def test_jobs_of_a_namespace_are_listed_without_reading_others(store: Store, sql: Any, many: str) -> None:
    """One of the namespaces has very many jobs. The names of the default namespace sort before, between and after those
    of the others."""
    await sql.execute(
        "insert into foliot.calendars (name, created_at, updated_at, days) values ('holidays', now(), now(), '{}')"
    )
    namespaces = ["default", "k", "k-2", "team", "team0"]
    for name in namespaces:
        await sql.execute(JOBS, STORED if name == many else 5)
        await sql.execute(
            "update foliot.jobs set name = foliot.qualified($1, replace(name, 'job ', 'k')), queue = "
            "foliot.qualified($1, queue) where name like 'job %'",
            name,
        )
    for name in ("a", "k", "k0", "team", "team.", "team/z", "z"):
        await sql.execute(JOBS, 1)
        await sql.execute(
            "update foliot.jobs set name = $1, queue = foliot.qualified(foliot.namespace_of($1), queue) where name = "
            "'job 1true'",
            name,
        )
        await sql.execute("delete from foliot.jobs where name like 'job %'")
    await sql.execute("vacuum analyze foliot.jobs")
    for name in namespaces:
        namespace = Namespace(name)
        stored = await sql.fetch(
            "select name from foliot.jobs where foliot.namespace_of(queue) = $1 order by name", name
        )
        wanted = [row[0] for row in stored][:40]
        listed = [job.name for job in await store.jobs.list_jobs(namespace, "", 40)]
        assert listed == wanted
        following = await store.jobs.list_jobs(namespace, bare(listed[2]), 10)
        assert [job.name for job in following] == wanted[3:13]
        matched = await store.jobs.match_jobs(namespace, None, "t", None, None, is_paused=None, limit=40, scan=3)
        assert [found for _, found in matched] == wanted
        assert await rows_read(sql, "jobs", "list_jobs", namespace.qualified(""), 40, name) < 200


async def test_matching_jobs_are_found_after_any_number_of_steps(store: Store, full: Any) -> None:
    wanted = [row[0] for row in await full.fetch("select name from foliot.jobs where name like '%9true' order by name")]
    found = await store.jobs.match_jobs(Namespace(), "%9true", None, None, None, is_paused=True, limit=10_000, scan=7)
    assert [name for _, name in found] == wanted
    first = await store.jobs.match_jobs(Namespace(), "%9true", None, None, None, is_paused=None, limit=3, scan=100)
    assert [name for _, name in first] == wanted[:3]


async def test_a_probe_is_searched_at_the_head_of_a_queue(store: Store, full: Any) -> None:
    await store.workers.register_worker(new_id(), "another", {"default": 1}, ["rare"])
    await full.execute(
        "insert into foliot.circuits (task, failures, open_until, updated_at) values ('rare', 5, now(), now())"
    )
    assert await rows_read(full, "circuit_breaker", "send_probes", None, 10.0, 200) < 500


async def test_rows_that_are_not_due_are_not_read(full: Any) -> None:
    read = {name: await rows_read(full, family, name, *arguments) for (family, name), arguments in ASKED.items()}
    assert {name: rows for name, rows in read.items() if rows > 500} == {}
    # The tables contain rows that could have been read.
    assert await full.fetchval("select count(*) from foliot.runs") == 6 * STORED


@pytest.mark.parametrize("kind", ["ready", "scheduled"])
async def test_a_search_for_what_is_not_there_does_not_read_the_other_runs(store: Store, sql: Any, kind: str) -> None:
    """Among runs of every kind, a search without an index soon meets one that it looks for."""
    await store.workers.register_worker(WORKER, "w", {"default": 10}, ["t"])
    await sql.execute(f"{FILL.rstrip().removesuffix(';')} where state = '{kind}'", STORED, WORKER)
    await sql.execute("vacuum analyze foliot.runs")
    assert await sql.fetchval("select count(*) from foliot.runs") == STORED
    read = {name: await rows_read(sql, family, name, *arguments) for (family, name), arguments in ASKED.items()}
    assert {name: rows for name, rows in read.items() if rows > 500} == {}


async def test_starts_of_a_rate_are_counted_once_for_all_waiting_runs(store: Store, sql: Any) -> None:
    rate = '{"rate": {"key": "k", "limit": 2000, "period_seconds": 3600}}'
    await sql.execute(
        "insert into foliot.rate_starts (rate_key, started_at) select 'k', now() from generate_series(1, 1990)"
    )
    await sql.execute(
        """
        insert into foliot.runs (id, created_at, due_at, rank, state, held_by, queue, task, options)
        select gen_random_uuid(), now(), now(), n, 'held', 'limit', 'default', 't', $1::jsonb from generate_series(1,
            1000) n
        """,
        rate,
    )
    await sql.execute("vacuum analyze")
    # Read once to count them, and once to find when the next one leaves the period.
    assert await rows_read(sql, "limits", "admit_runs", None, 500, 200, 20, "", "") < 10_000
    assert (await store.limits.admit_runs()).queues == ["default"] * 10


async def line_up(sql: Any, keys: int, *, waiting: int, options: str, is_open: bool = True) -> None:
    """Inserts keys with waiting runs, and with a running one if `is_open`. `options` are those of the key %s."""
    await sql.execute(
        """
        insert into foliot.runs (id, created_at, due_at, rank, state, held_by, queue, task, worker_id, options)
        select gen_random_uuid(), now(), now(), n * 10000 + place, case when place = 0 then 'running' else 'held' end,
            case when place > 0 then 'limit' end, 'default', 't', case when place = 0 then $2::uuid end,
                format($3::text, n)::jsonb
        from generate_series(1, $1::bigint) n, generate_series($5::bigint, $4::bigint) place
        """,
        keys, WORKER, options, waiting, 0 if is_open else 1,
    )  # fmt: skip


async def look_at_all(store: Store) -> list[str]:
    """The queues of all admitted runs, until no more are admitted."""
    admitted: list[str] = []
    while True:
        admission = await store.limits.admit_runs()
        admitted += admission.queues
        if not (admission.queues or admission.is_more):
            return admitted


CONCURRENCY = '{"concurrency": {"key": "key %s", "limit": 1, "at_limit": "wait"}}'
RATE = '{"rate": {"key": "key %s", "limit": 1, "period_seconds": 3600}}'


@pytest.mark.parametrize(("keys", "waiting"), [(STORED, 1), (1, STORED)])
async def test_full_keys_cost_nothing_until_a_run_of_one_ends(store: Store, sql: Any, keys: int, waiting: int) -> None:
    await store.workers.register_worker(WORKER, "w", {"default": 10}, ["t"])
    await line_up(sql, keys, waiting=waiting, options=CONCURRENCY)
    await sql.execute("vacuum analyze")
    assert await look_at_all(store) == []
    await sql.execute("vacuum analyze")
    assert await rows_read(sql, "limits", "admit_runs", None, 500, 200, 20, "", "") < 200
    # The last key in order, which no statement reads by chance.
    key = f"key {keys}" if keys == 1 else "key 999"
    run_id, token = await sql.fetchrow(
        "select id, token from foliot.runs where state = 'running' and options #>> '{concurrency,key}' = $1", key
    )
    await store.outcomes.finish_runs(WORKER, [Outcome(run_id, token, RunState.SUCCEEDED)])
    assert (await store.limits.admit_runs()).queues == ["default"]
    assert await sql.fetchval("select options #>> '{concurrency,key}' from foliot.runs where state = 'ready'") == key


async def test_used_up_rates_cost_nothing_until_a_start_leaves_their_period(store: Store, sql: Any) -> None:
    await line_up(sql, STORED, waiting=2, options=RATE, is_open=False)
    await sql.execute("vacuum analyze")
    assert len(await look_at_all(store)) == STORED
    await sql.execute("vacuum analyze")
    assert await rows_read(sql, "limits", "admit_runs", None, 500, 200, 20, "", "") < 300
    later = await sql.fetchval("select min(look_at) from foliot.turns")
    admitted = 0
    for _ in range(50):
        row = await sql.fetchrow(queries.load("limits")["admit_runs"].sql, later, 500, 200, 20, "zzz", "zzz")
        admitted += len(row[0])
    assert admitted == await sql.fetchval("select count(*) from foliot.rate_starts where started_at = $1", later) > 0


async def test_runs_with_at_limit_are_read_only_for_changed_keys(store: Store, sql: Any) -> None:
    """A new key is admitted at once, however many keys wait for their cancelled runs to end."""
    await store.workers.register_worker(WORKER, "w", {"default": 10}, ["t"])
    oust = CONCURRENCY.replace('"wait"', '"cancel_old"')
    await line_up(sql, STORED, waiting=1, options=oust)
    await sql.execute("vacuum analyze")
    await look_at_all(store)
    assert await sql.fetchval("select count(*) from foliot.runs where cancel is not null") == STORED
    await line_up(sql, 1, waiting=1, options=oust.replace("key %s", "zzz%s"))
    assert (await store.limits.admit_runs()).ousted == [WORKER]


@pytest.mark.parametrize("chunk_size", [1, 3])
async def test_the_next_items_of_a_map_cost_the_same_for_any_length(store: Store, sql: Any, chunk_size: int) -> None:
    costs = []
    for length in (300, 30_000):
        map_id = new_id()
        template = {
            "task": "t",
            "queue": "default",
            "priority": 0,
            "item_name": "item",
            "rank_offset": 0,
            "chunk_size": chunk_size,
        }
        await sql.execute(
            """
            insert into foliot.parents (id, root_id, run_id, kind, created_at, on_failure, total, next_index, capacity,
                template, items)
            select $1, $1, $1, 'map', now(), 'continue', $2::bigint / $3::bigint, 0, 1, $4::jsonb,
                (select jsonb_agg(md5(n::text) order by n) from generate_series(1, $2::bigint) n)
            """,
            map_id, length, chunk_size, json.dumps(template),
        )  # fmt: skip
        items = [
            item
            for (item,) in await sql.fetch(
                "select jsonb_array_elements_text(items) from foliot.parents where id = $1", map_id
            )
        ]
        for place in range(3):
            blocks = await blocks_read(sql, "select foliot.refill($1, now())", map_id)
            made = json.loads(
                await sql.fetchval("delete from foliot.runs where parent_id = $1 returning payload", map_id)
            )["item"]
            await sql.execute("update foliot.parents set unfinished = 0 where id = $1", map_id)
            expected = items[place * chunk_size : (place + 1) * chunk_size]
            assert made == (expected[0] if chunk_size == 1 else expected)
        costs.append(blocks)
    assert costs[1] < costs[0] + 50, costs
