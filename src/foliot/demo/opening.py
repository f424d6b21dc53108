"""Fills a new installation with the demo's shop. An installation that has it already stays as people have made it."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from foliot.clock import SystemClock
from foliot.demo.shop import (
    ALERT_RULES,
    HOLIDAYS,
    PAUSED_JOBS,
    PAUSED_QUEUES,
    QUEUE_LIMITS,
    TRIGGERED,
    calendar_of,
    jobs,
    workflows,
)
from foliot.errors import Conflict, NotFound
from foliot.sdk.alert_operations import AlertOperations

FEEDER = "orders"
LAST = "train-recommendations"


def open_shop(url: str) -> None:
    """Every step can be repeated. The job that comes last tells whether all of them have been taken."""
    with AlertOperations(url) as client:
        try:
            client.get_job(LAST)
        except NotFound:
            _fill(client, url)
        with suppress(NotFound):
            # The port may be another one than last time.
            if client.get_job(FEEDER).document["payload"] != {"url": url}:
                client.change_job(FEEDER, {"payload": {"url": url}})


def _fill(client: AlertOperations, url: str) -> None:
    now = SystemClock().now()
    client.put_calendar(HOLIDAYS, calendar_of(now.year))
    for queue, limits in QUEUE_LIMITS.items():
        client.change_queue(queue, limits)
    for queue, reason in PAUSED_QUEUES.items():
        client.pause_gate(f"/queues/{queue}", reason=reason)
    for name, rule in ALERT_RULES.items():
        client.put_alert_rule(name, rule)
    for workflow in workflows():
        with suppress(Conflict):
            client.create_workflow(workflow)
    for job in jobs(url):
        with suppress(Conflict):
            client.create_job(job)
        if hours := job.get("metadata", {}).get("past"):
            start = now - timedelta(hours=hours)
            past = {"from": start.isoformat(), "to": now.isoformat(), "overlap": "allow_all"}
            client.backfill_job(job["name"], past)
        if why := PAUSED_JOBS.get(job["name"]):
            client.pause_job(job["name"], reason=why)
    for name in TRIGGERED:
        client.trigger_job(name)
