"""The recurring jobs, workflows, calendar, limits, pauses and alert rules of the shop in the demo, in the form that the
API takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import foliot
from foliot.demo.tasks import (
    build_gallery,
    check_totals,
    extract,
    list_photos,
    load_warehouse,
    publish,
    resize_photo,
)

ZONE = "Europe/Berlin"
HOLIDAYS = "public-holidays"
QUEUE_LIMITS = {"reports": {"max_running": 2}, "newsletter": {"max_depth": 500}}
PAUSED_QUEUES = {"newsletter": "Marketing is still changing the template."}
PAUSED_JOBS = {"old-shop-export": "The new shop sends these files itself since Monday."}
ALERT_RULES: dict[str, dict[str, Any]] = {
    "finance-fails": {"condition": {"kind": "run_failed"}, "scope": {"tag": "finance"}, "severity": "critical"},
    "cards-declined": {"condition": {"kind": "success_rate", "below": 90}, "scope": {"task": "charge_card"}},
    "mail-waits": {"condition": {"kind": "queue_lag", "above": "2m"}, "scope": {"queue": "mail"}},
}
TRIGGERED = ("orders", "new-collection", "bookkeeping", "train-recommendations")
"""Jobs that have a first run at once."""


def calendar_of(year: int) -> dict[str, Any]:
    days = ("01-01", "05-01", "10-03", "12-25", "12-26")
    return {"timezone": ZONE, "dates": [f"{one}-{day}" for one in (year, year + 1) for day in days]}


def jobs(url: str) -> list[dict[str, Any]]:
    """The recurring jobs. `metadata.past` is the number of hours before the demo began whose ticks are run at first."""
    return [
        {"name": "orders", "task": "place_orders", "every": "10s", "payload": {"url": url}, "tags": ["shop"]},
        {
            "name": "stock-sync", "task": "sync_stock", "every": "30s", "overlap": "skip", "tags": ["stock"],
            "concurrency": {"key": "erp", "limit": 1},
        },
        {
            "name": "price-import", "task": "import_prices", "cron": "*/5 * * * *", "tags": ["stock"],
            "concurrency": {"key": "erp", "limit": 1}, "metadata": {"past": 3},
        },
        {
            "name": "search-index", "cron": "*/15 * * * *", "tags": ["shop"],
            "command": "for n in 1 2 3 4 5; do echo \"segment $n of 5\"; sleep 0.6; done; echo done",
            "metadata": {"past": 8},
        },
        {
            "name": "sales-report", "task": "sales_report", "cron": "0 * * * *", "timezone": ZONE,
            "tags": ["finance"], "metadata": {"past": 30},
        },
        {
            "name": "morning-figures", "task": "sales_report", "cron": "30 7 * * MON-FRI", "timezone": ZONE,
            "calendar": HOLIDAYS, "tags": ["finance"], "metadata": {"past": 24 * 28},
        },
        {
            "name": "nightly-backup", "cron": "30 2 * * *", "timezone": ZONE, "tags": ["operations"],
            "command": "echo dumping 14 tables; sleep 2; echo '3.1 GB written'", "metadata": {"past": 24 * 28},
        },
        {"name": "month-end-closing", "task": "sales_report", "cron": "0 22 L * *", "timezone": ZONE,
            "tags": ["finance"]},
        {
            "name": "supplier-upload", "cron": "*/10 * * * *", "retries": 1, "tags": ["stock"], "metadata": {"past": 2},
            "backoff": {"base_seconds": 5},
            "command": "echo 'ssh: connect to host supplier.example port 22: Connection refused' >&2; exit 255",
        },
        {"name": "old-shop-export", "cron": "0 */6 * * *", "timezone": ZONE, "command": "echo exporting",
            "tags": ["stock"]},
        {"name": "train-recommendations", "task": "train_recommendations", "queue": "gpu", "cron": "0 */2 * * *",
            "overlap": "skip"},
    ]  # fmt: skip


def workflows() -> list[dict[str, Any]]:
    return [_of(new_collection(), every="10m", overlap="allow_all"), _of(bookkeeping(), every="4m", overlap="skip")]


def new_collection() -> foliot.Workflow:
    """Photos become a gallery, one run for each photo; somebody approves it, or nobody does and it goes out anyway."""
    flow = foliot.Workflow("new-collection", tags=["shop"])
    photos = flow.step(list_photos)
    small = flow.map("thumbnails", resize_photo, over=photos, item="photo", width=200, max_concurrency=4)
    large = flow.map("photos", resize_photo, over=photos, item="photo", width=1600, max_concurrency=4)
    gallery = flow.step("gallery", build_gallery, after=[small, large], rule="all_done")
    asked = {"signal": {"timeout_seconds": 1500, "on_timeout": "continue"}}
    flow.step("publish", publish, after=gallery, options=asked)
    flow.teardown("clean-up", "shell", command="echo removed the originals")
    return flow


def bookkeeping() -> foliot.Workflow:
    """Three extracts, a check that fails now and then, and a report with a branch."""
    flow = foliot.Workflow("bookkeeping", tags=["finance"])
    sources = [flow.step(f"from-{source}", extract, source=source) for source in ("shop", "bank", "warehouse")]
    check = flow.step("check", check_totals, after=sources)
    load = flow.step("load", load_warehouse, after=check)
    flow.shell(
        "announce", "echo more than 2,500 orders today", after=load, when="steps['from-shop'].result.rows > 2500"
    )
    flow.shell("report", "echo the books are closed", after=load)
    flow.shell("tell-finance", "echo 'please look at the totals'", after=check, rule="one_failed")
    return flow


def _of(flow: foliot.Workflow, **schedule: Any) -> dict[str, Any]:
    body: Mapping[str, Any] = flow.request()
    return {**body, **schedule}
