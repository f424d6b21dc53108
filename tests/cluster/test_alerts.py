"""Alerts of real processes reach a real SMTP server within half a minute: each once, and its resolution once."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from foliot.model.alert_channel import AlertChannel
from foliot.model.ids import new_id
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.alerts import put_rule
from tests.support.processes import FoliotProcess
from tests.support.runs import finish
from tests.support.smtp import Mailbox, smtp_server
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

APP = "tests.cluster.apps:app"
# A tick that is late by less than a minute still fires.
PERIOD_SECONDS = 100
LEASE, LAG, QUIET = timedelta(seconds=6), timedelta(seconds=2), timedelta(seconds=15)
ARRIVES_WITHIN_SECONDS = 30
FAILED = "select finished_at from foliot.history where id = $1"
STARTED = "select started_at from foliot.history where id = $1"
FIRED = "select max(created_at) from foliot.runs where job_id is not null"


@pytest.fixture
async def mailbox() -> AsyncIterator[Mailbox]:
    async with smtp_server() as mailbox:
        yield mailbox


async def put_channel(store: Store, mailbox: Mailbox) -> None:
    fields = {
        "kind": "email", "host": "localhost", "port": mailbox.port, "security": "none",
        "from": "foliot@example.org", "to": ["ops@example.org"], "title": "{{ rule }} {{ event }}",
    }  # fmt: skip
    channel: AlertChannel = msgspec.convert(fields, AlertChannel)
    assert await store.alert_channels.put_channel("ops", channel, {}) is not None


def counted(mailbox: Mailbox) -> Counter[str]:
    """The subjects of the mails so far."""
    return Counter(str(mail["subject"]) for mail in mailbox.mails)


def delays(mailbox: Mailbox, true_since: Mapping[str, datetime]) -> dict[str, float]:
    """The seconds from the moment at which each subject was true to its mail."""
    at = dict(zip((str(mail["subject"]) for mail in mailbox.mails), mailbox.arrived_at, strict=True))
    return {subject: (at[subject] - since).total_seconds() for subject, since in true_since.items()}


async def arrived(mailbox: Mailbox, *subjects: str) -> None:
    async def look() -> bool:
        return all(counted(mailbox)[subject] for subject in subjects)

    await until(look)


async def put_job_with_missed_ticks(store: Store) -> None:
    """A recurring job of which several ticks were missed, and whose next one is due in half a minute."""
    now = await store.jobs.database_now()
    began = now - timedelta(seconds=3 * PERIOD_SECONDS + 70)
    request = JobRequest(task="noop", name="tick", every=f"{PERIOD_SECONDS}s", catchup="none", queue="unserved")
    job = request.new_job(new_id(), namespace=Namespace(), queue="unserved", now=began, calendar=None)
    await store.jobs.insert_job(job)


async def submit(store: Store, task: str, queue: str, payload: str | None = None) -> NewRun:
    run = NewRun(id=new_id(), task=task, queue=queue, payload=payload)
    await store.run_inserts.insert_runs([run])
    store.hints.send([queue])
    return run


@pytest.mark.slow
async def test_each_alert_and_its_resolution_arrive_once_within_half_a_minute(
    database_url: str, store: Store, sql: Any, mailbox: Mailbox
) -> None:
    now, true_since = store.jobs.database_now, dict[str, datetime]()
    environment = {
        "FOLIOT_DATABASE_URL": database_url, "FOLIOT_HTTP_ALLOW_HOSTS": "localhost", "FOLIOT_LOST_ATTEMPTS_MAX": "1",
        "FOLIOT_WORKER_TTL_SECONDS": "6", "FOLIOT_WORKER_BEAT_SECONDS": "2",
    }  # fmt: skip
    await put_channel(store, mailbox)
    told: dict[str, Any] = {"channels": ["ops"], "severity": "critical"}
    await put_rule(store, "killed", "run_failed", scope={"task": "linger"}, resolve_after="15s", **told)
    await put_rule(store, "missed", "tick_missed", scope={"job": "tick"}, **told)
    await put_rule(store, "lag", "queue_lag", above="2s", scope={"queue": "slow"}, **told)
    await put_rule(store, "rate", "success_rate", min_runs=100, scope={"queue": "mail"}, **told)
    async with AsyncExitStack() as stack:
        # Two nodes: either may evaluate, and either may deliver.
        for _ in range(2):
            scheduler = await stack.enter_async_context(FoliotProcess("scheduler", environment=environment))
            await scheduler.event("ProcessStarted", part="scheduler")
        victim = await stack.enter_async_context(FoliotProcess("worker", APP, environment=environment))
        await victim.event("ProcessStarted", part="worker")
        lingering = await submit(store, "linger", "default", '{"seconds": 600}')

        async def is_running() -> bool:
            found = await store.runs.get_run(lingering.id)
            return found is not None and found.state is RunState.RUNNING

        await until(is_running)
        await put_job_with_missed_ticks(store)
        true_since["missed opened"] = await now()
        slow = await submit(store, "noop", "slow")
        true_since["lag opened"] = await now() + LAG
        for number in range(100):
            await finish(store, RunState.SUCCEEDED if number % 17 else RunState.FAILED)
        true_since["rate opened"] = await now()
        victim.kill_tree()
        true_since["killed opened"] = await now() + LEASE
        await arrived(mailbox, "killed opened", "missed opened", "lag opened", "rate opened")
        for _ in range(60):
            await finish(store)
        true_since["rate resolved"] = await now()
        worker = await stack.enter_async_context(
            FoliotProcess("worker", APP, "--queue", "slow=1", environment=environment)
        )
        await worker.event("ProcessStarted", part="worker")
        await arrived(mailbox, "killed resolved", "missed resolved", "lag resolved", "rate resolved")
    true_since |= {
        "killed resolved": await sql.fetchval(FAILED, lingering.id) + QUIET,
        "missed resolved": await sql.fetchval(FIRED),
        "lag resolved": await sql.fetchval(STARTED, slow.id),
    }
    names = ("killed", "missed", "lag", "rate")
    assert counted(mailbox) == {f"{name} {event}": 1 for name in names for event in ("opened", "resolved")}
    found = delays(mailbox, true_since)
    assert len(found) == 8
    assert all(delay < ARRIVES_WITHIN_SECONDS for delay in found.values()), found
    bodies = {str(mail["subject"]): mail.get_body(("plain",)) for mail in mailbox.mails}
    killed = bodies["killed opened"]
    assert killed is not None
    assert f"Run {lingering.id} of linger failed for good" in " ".join(killed.get_content().split())
    rate = bodies["rate opened"]
    assert rate is not None
    assert "94.0 % of 100 runs succeeded" in " ".join(rate.get_content().split())
