"""Each condition of alerts on a real database: when it holds, and when it no longer does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.alerts.job_conditions import last_deadline
from foliot.errors import Invalid
from foliot.model.alert_rule import SCOPES, AlertRule, Condition, NotStarted, Scope, check_rule, kind_of
from foliot.model.ids import new_id
from foliot.model.job import RecurringJob
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.model.states import RunState
from foliot.store.queries import query_of
from foliot.store.store import Store
from tests.support.alerts import Watch, put_rule
from tests.support.fake_clock import FakeClock
from tests.support.runs import finish, insert

REPLAY = query_of("replay", (), "update foliot.history set rerun_as = gen_random_uuid()")


async def one(watch: Watch, seconds: float = 5) -> str:
    """The sentence of the only alert."""
    (alert,) = await watch.look(seconds)
    return alert.summary


async def test_dead_letters_count_until_they_are_replayed(watch: Watch) -> None:
    await put_rule(watch.store, "dead", "dead_letters", above=2, channels=["ops"])
    for _ in range(2):
        await finish(watch.store, RunState.FAILED)
    assert await watch.look() == []
    await finish(watch.store, RunState.FAILED)
    assert await one(watch) == "3 runs failed in the last 1h and wait for a replay; the rule allows 2"
    await watch.store.database.execute(REPLAY)
    assert await watch.look() == []


async def test_a_task_that_no_worker_offers(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "unserved", "no_worker")
    await put_rule(watch.store, "other", "no_worker", scope={"task": "charge"})
    await insert(watch.store)
    assert await one(watch) == (
        "One run waits for the task send_invoice, and no live worker of the queue mail offers it"
    )
    await watch.store.workers.register_worker(new_id(), "a worker", {"mail": 1}, ["send_invoice"])
    assert await watch.look() == []


async def test_an_open_circuit(watch: Watch, sql: Any, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "circuits", "circuit_open")
    await watch.look()
    await sql.execute(
        "insert into foliot.circuits (task, failures, open_until, updated_at) values ('charge', 5, $1, $2)",
        fake_clock.now() + timedelta(minutes=1),
        fake_clock.now(),
    )
    assert (await one(watch)).startswith("The circuit of the task charge is open after 5 failures in a row")
    await sql.execute("update foliot.circuits set open_until = null")
    assert await watch.look() == []


async def test_fewer_workers_and_schedulers_than_wanted(watch: Watch, sql: Any) -> None:
    await put_rule(watch.store, "mailers", "few_workers", below=2, scope={"queue": "mail*"})
    await put_rule(watch.store, "schedulers", "few_schedulers")
    for queue in ("mail", "other"):
        await watch.store.workers.register_worker(new_id(), f"of {queue}", {queue: 1}, ["send"])
    summaries = {alert.rule: alert.summary for alert in await watch.look()}
    assert summaries == {
        "mailers": "1 live worker for the queue mail*; the rule wants 2 or more",
        "schedulers": "0 live scheduler nodes; the rule wants 2 or more",
    }


async def test_an_old_transaction_and_a_large_database(watch: Watch, sql: Any) -> None:
    await put_rule(watch.store, "database", "database", transaction_age="1s", size_bytes=1, connections_percent=None)
    async with sql.transaction():
        await sql.fetchval("select txid_current()")
        await sql.execute("select pg_sleep(1.2)")
        found = {alert.subject: alert.summary for alert in await watch.look()}
    assert set(found) == {"transaction_age", "size"}
    assert "because dead rows can't be removed meanwhile" in found["transaction_age"]
    (alert,) = await watch.look()
    assert alert.subject == "size"


async def test_a_heartbeat_that_stays_silent(watch: Watch) -> None:
    rules = watch.store.alert_rules
    await put_rule(watch.store, "backup", "heartbeat_silent", heartbeat="nightly-backup", every="1h", grace="5m")
    assert await watch.look(3600) == []
    assert (await one(watch, 400)).startswith("The heartbeat nightly-backup has never come; ")
    assert await rules.beat_heartbeat("nightly-backup", "cron")
    assert await watch.look() == []
    assert await watch.look(3890) == []
    assert (await one(watch, 10)).startswith("The heartbeat nightly-backup came last 1 h 5 m ago; ")
    assert not await rules.beat_heartbeat("unknown", "cron")


async def test_an_archive_that_fails(watch: Watch, sql: Any, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "archive", "archive_failing")
    await watch.look()
    await sql.execute(
        "insert into foliot.archives (kind, location, at, id, owner, expires_at, failing_since, error) "
        "values ('runs', 's3://bucket', $1, $2, $2, $1, $1, 'no such bucket')",
        fake_clock.now(),
        UUID(int=1),
    )
    assert await one(watch) == "The archive has failed for 5 s: no such bucket"
    await sql.execute("update foliot.archives set failing_since = null")
    assert await watch.look() == []


async def put_job(store: Store, name: str, clock: FakeClock) -> RecurringJob:
    request = JobRequest(task="report", name=name, every="1m")
    job = request.new_job(new_id(), namespace=Namespace(), queue="mail", now=clock.now(), calendar=None)
    await store.jobs.insert_job(job)
    return job


async def end_job_run(watch: Watch, job: RecurringJob, *, seconds: float = 1, state: str = "succeeded") -> None:
    """A run of a recurring job that ends now."""
    now = watch.clock.now()
    await watch.store.database.execute(
        END, id=new_id(), at=now, started=now - timedelta(seconds=seconds), state=state, name=job.name, job_id=job.id
    )


MISS = query_of(
    "miss_tick",
    ("job_id", "at"),
    "insert into foliot.ticks (job_id, tick_at, noted_at, reason) "
    "values (:job_id::uuid, :at::timestamptz, :at::timestamptz, 'missed')",
)
END = query_of(
    "end_run",
    ("id", "at", "started", "state", "name", "job_id"),
    "insert into foliot.history (id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, "
    "state, queue, task, name, job_id, tick_at) values (:id::uuid, :started::timestamptz, :started::timestamptz, "
    ":started::timestamptz, :at::timestamptz, 1, 1, 0, 0, :state::text, 'mail', 'report', :name::text, :job_id::uuid, "
    ":started::timestamptz)",
)


async def test_a_recurring_job_recovers_with_its_next_success(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "failures", "run_failed", channels=["ops"], scope={"job": "night*"})
    job = await put_job(watch.store, "nightly", fake_clock)
    other = await put_job(watch.store, "daily", fake_clock)
    await watch.look()
    await end_job_run(watch, job, state="failed")
    await end_job_run(watch, other, state="failed")
    (alert,) = await watch.look()
    assert alert.subject == "nightly"
    await end_job_run(watch, other)
    assert len(await watch.look()) == 1
    await end_job_run(watch, job)
    assert await watch.look() == []
    # It failed and recovered between two looks: channels learn of that too.
    await end_job_run(watch, job, state="failed")
    await fake_clock.advance(1)
    await end_job_run(watch, job)
    await watch.look()
    assert await watch.look() == []
    assert [message["event"] for message in await watch.messages()] == ["opened", "resolved"] * 2


async def test_a_duration_that_is_unusual(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "slow", "unusual_duration", factor=2, at_least="5s")
    job = await put_job(watch.store, "nightly", fake_clock)
    await watch.look()
    for _ in range(10):
        await end_job_run(watch, job, seconds=10)
        await fake_clock.advance(60)
    assert await watch.look() == []
    await end_job_run(watch, job, seconds=25)
    assert (await one(watch)).endswith("of nightly took 25 s; 95 % of its last 10 runs took 10 s or less")
    await fake_clock.advance(60)
    await end_job_run(watch, job, seconds=11)
    assert await watch.look() == []


async def test_a_run_that_takes_unusually_long_opens_an_alert_while_it_runs(
    watch: Watch, fake_clock: FakeClock, sql: Any
) -> None:
    await put_rule(watch.store, "slow", "unusual_duration", factor=2, at_least="5s")
    job = await put_job(watch.store, "nightly", fake_clock)
    for _ in range(10):
        await end_job_run(watch, job, seconds=10)
        await fake_clock.advance(60)
    await watch.look()
    run = await insert(watch.store, task="report", name="nightly")
    await sql.execute(
        "update foliot.runs set state = 'running', worker_id = id, started_at = $1, job_id = $2",
        fake_clock.now(),
        job.id,
    )
    assert await watch.look(19) == []
    assert (await one(watch, 2)).startswith(f"Run {run} of nightly has been running for 21 s")


async def test_a_missed_tick_and_a_late_one(watch: Watch, fake_clock: FakeClock, sql: Any) -> None:
    await put_rule(watch.store, "ticks", "tick_missed", channels=["ops"])
    job = await put_job(watch.store, "nightly", fake_clock)
    assert job.fire_at is not None
    await watch.look()
    await watch.store.database.execute(MISS, job_id=job.id, at=fake_clock.now())
    assert "was missed, and no later one has fired" in await one(watch)
    assert len(await watch.look(100)) == 1
    # The next tick is due and nobody fires it: still one alert.
    (late,) = await watch.look(60)
    assert late.messages == 1
    await fake_clock.advance(1)
    await end_job_run(watch, job, seconds=0)
    await sql.execute("update foliot.jobs set fire_at = $1, next_at = $1", fake_clock.now() + timedelta(hours=1))
    assert await watch.look() == []
    assert [message["event"] for message in await watch.messages()] == ["opened", "resolved"]


async def test_a_job_that_is_not_done_by_a_time_of_day(watch: Watch, fake_clock: FakeClock) -> None:
    # It is noon in UTC, and one o'clock in Zurich.
    await put_rule(
        watch.store, "by-two", "not_finished", by="14:00", timezone="Europe/Zurich", scope={"job": "nightly"}
    )
    await put_rule(watch.store, "began", "not_started", by="13:30", scope={"job": "nightly"}, lookback="2h")
    job = await put_job(watch.store, "nightly", fake_clock)
    await watch.look()
    assert await watch.look(3590) == []
    summary = "No run of nightly has succeeded by 14:00 (Europe/Zurich), within 1d before"
    assert await one(watch, 10) == summary
    await end_job_run(watch, job, state="failed")
    assert await one(watch) == summary
    await end_job_run(watch, job)
    assert await watch.look() == []
    assert await watch.look(3600) == []


async def test_a_run_that_is_not_done_within_a_time_after_it_was_due(
    watch: Watch, fake_clock: FakeClock, sql: Any
) -> None:
    await put_rule(watch.store, "prompt", "not_started", within="30s", scope={"job": "nightly"})
    await put_rule(watch.store, "done", "not_finished", within="1m", scope={"job": "nightly"})
    job = await put_job(watch.store, "nightly", fake_clock)
    await insert(watch.store, task="report", name="nightly")
    await sql.execute("update foliot.runs set job_id = $1, tick_at = due_at", job.id)
    assert await watch.look(25) == []
    (alert,) = await watch.look(10)
    assert alert.summary.endswith("and has not started within 30s")
    await sql.execute("update foliot.runs set state = 'running', worker_id = id, started_at = $1", fake_clock.now())
    (alert,) = await watch.look(60)
    assert alert.summary.endswith("and has not finished within 1m")


def test_the_last_deadline_follows_the_clock_of_its_zone() -> None:
    condition = NotStarted(by="02:30", timezone="Europe/Zurich")
    assert last_deadline(condition, datetime(2026, 7, 1, 0, 29, tzinfo=UTC)) == datetime(2026, 6, 30, 0, 30, tzinfo=UTC)
    assert last_deadline(condition, datetime(2026, 7, 1, 0, 30, tzinfo=UTC)) == datetime(2026, 7, 1, 0, 30, tzinfo=UTC)
    assert last_deadline(condition, datetime(2026, 1, 1, 2, 0, tzinfo=UTC)) == datetime(2026, 1, 1, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("kind", Condition.__args__)
def test_a_condition_refuses_a_scope_that_it_has_not(kind: type) -> None:
    for field in ("job", "task", "queue", "tag"):
        if field in SCOPES.get(kind, frozenset()):
            continue
        fields = {"heartbeat": "x"} if "heartbeat" in kind.__struct_fields__ else {}  # type: ignore[attr-defined]
        asked = AlertRule(condition=kind(**fields), scope=Scope(**{field: "x"}))
        with pytest.raises(Invalid, match=rf"scope.{field}: the condition {kind_of(asked)}") as caught:
            check_rule(asked)
        assert caught.value.field == f"scope.{field}"
