"""The tasks of the demo's shop. They only wait and print; some of them fail now and then, as real ones do."""

from __future__ import annotations

import hashlib
from typing import Any

import foliot
from foliot.clock import SystemClock
from foliot.sdk.async_client import AsyncClient

app = foliot.App()
CUSTOMERS = (
    "ada", "bela", "chiara", "dmitri", "emre", "freya", "goran", "hana", "isa", "jonas", "katya", "luis",
)  # fmt: skip


class SmtpTimeout(Exception):
    """The mail server is slow; a retry helps."""


class GatewayTimeout(Exception):
    """The payment service is slow; a retry helps."""


class CardDeclined(Exception):
    """No retry helps."""


class FeedIsEmpty(Exception):
    """The supplier has not delivered its prices."""


def luck(ctx: foliot.Context, what: str = "") -> float:
    """A number from 0 to 1 that is always the same for an attempt."""
    digest = hashlib.sha256(f"{ctx.run_id} {ctx.attempt} {what}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


async def work(ctx: foliot.Context, least: float, most: float) -> float:
    """Takes some seconds between the two, and more often few than many."""
    seconds = least + (most - least) * luck(ctx, "seconds") ** 2
    await SystemClock().sleep(seconds)
    return round(seconds, 2)


@app.task(retries=1, tags=["shop"])
async def place_orders(ctx: foliot.Context, url: str) -> dict[str, Any]:
    """Submits what a few new orders need: it keeps the demo busy."""
    count = 1 + int(luck(ctx, "count") * 4)
    first = int(luck(ctx, "number") * 900_000) + 100_000
    jobs = [job for index in range(count) for job in jobs_of_order(ctx, first + index)]
    async with AsyncClient(url) as client:
        await client.create_jobs(jobs, idempotency_key=f"orders of {ctx.run_id}")
    print(f"{count} new orders, from number {first} on")
    return {"orders": count, "jobs": len(jobs)}


def jobs_of_order(ctx: foliot.Context, order: int) -> list[dict[str, Any]]:
    customer = CUSTOMERS[int(luck(ctx, f"customer {order}") * len(CUSTOMERS))]
    cents = 500 + int(luck(ctx, f"cents {order}") ** 3 * 90_000)
    tags = [f"customer:{customer}"]
    charge = {
        "task": "charge_card",
        "name": f"order {order}",
        "payload": {"order": order, "customer": customer, "cents": cents},
        "concurrency": {"key": f"customer-{customer}", "limit": 1},
        "priority": 10 if cents > 40_000 else 0,
        "tags": [*tags, *(["large"] if cents > 40_000 else [])],
    }
    mail = {"task": "send_mail", "payload": {"order": order, "kind": "confirmation"}, "fairness_key": customer}
    locate = {
        "task": "find_address",
        "payload": {"customer": customer},
        "rate": {"key": "maps", "limit": 10, "period_seconds": 60},
        "delay_seconds": 5,
    }
    letter = {
        "task": "send_newsletter",
        "payload": {"customer": customer, "issue": 12 + order % 6},
        "unique": {"key": f"newsletter {customer} {order % 6}"},
        "queue": "newsletter",
    }
    ship = {"task": "ship_order", "name": f"order {order}", "payload": {"order": order}}
    jobs: list[dict[str, Any]] = [charge, mail | {"tags": tags}, locate, letter | {"tags": ["marketing"]}]
    return [*jobs, ship] if luck(ctx, f"ship {order}") < 0.4 else jobs


@app.task(queue="payments", retries=3, timeout=30, never_on=[CardDeclined])
async def charge_card(ctx: foliot.Context, order: int, customer: str, cents: int) -> dict[str, Any]:
    print(f"asking for {cents / 100:.2f} EUR of {customer}, order {order}")
    await work(ctx, 0.3, 4)
    chance = luck(ctx, "bank")
    if chance < 0.02:
        raise CardDeclined("the bank declined the card ending in 4242")
    if chance < 0.08:
        raise GatewayTimeout("payments.example did not answer within 2 seconds")
    print("paid")
    return {"payment": f"pay_{order}", "cents": cents}


@app.task(queue="mail", retries=4, timeout=30, tags=["mail"])
async def send_mail(ctx: foliot.Context, order: int, kind: str) -> str:
    print("connecting to smtp.example:587")
    await work(ctx, 0.2, 2)
    if luck(ctx, "smtp") < 0.05:
        raise SmtpTimeout("smtp.example did not greet within 2 seconds")
    print(f"250 ok, queued as {order:x}")
    return f"{kind} of order {order}"


@app.task(queue="newsletter", retries=2)
async def send_newsletter(ctx: foliot.Context, customer: str, issue: int) -> str:
    await work(ctx, 0.2, 1)
    return f"issue {issue} to {customer}"


@app.task(retries=2, timeout=10)
async def find_address(ctx: foliot.Context, customer: str) -> dict[str, Any]:
    await work(ctx, 0.1, 0.6)
    return {"customer": customer, "latitude": 47.37, "longitude": 8.54}


async def pick(order: int) -> str:
    await SystemClock().sleep(1.5)
    return f"shelf {order % 40}"


async def hand_over(order: int) -> str:
    await SystemClock().sleep(1)
    return f"parcel {order}"


@app.task(queue="warehouse", retries=3)
async def ship_order(ctx: foliot.Context, order: int) -> str:
    """A durable function: its steps are recorded, and its wait holds no slot."""
    shelf = await ctx.step("pick", pick, order)
    print(f"taken from {shelf}; the van comes in a moment")
    await ctx.sleep("20s", "van")
    return await ctx.step("hand over", hand_over, order)


@app.task(retries=1, timeout=120, tags=["stock"])
async def sync_stock(ctx: foliot.Context) -> dict[str, int]:
    total = 40
    for done in range(total):
        await SystemClock().sleep(0.1 + 0.2 * luck(ctx, f"{done}"))
        ctx.progress((done + 1) / total, f"shelf {done + 1} of {total}")
    return {"shelves": total, "corrected": int(luck(ctx, "corrected") * 7)}


@app.task(retries=1, timeout=60, tags=["stock"])
async def import_prices(ctx: foliot.Context) -> dict[str, int]:
    print("GET https://supplier.example/prices.csv")
    await work(ctx, 1, 6)
    if luck(ctx, "feed") < 0.18:
        raise FeedIsEmpty("prices.csv has a header and no rows")
    rows = 1_000 + int(luck(ctx, "rows") * 400)
    print(f"{rows} rows")
    return {"rows": rows}


@app.task(queue="reports", retries=1, timeout=300, tags=["finance"])
async def sales_report(ctx: foliot.Context) -> dict[str, Any]:
    seconds = await work(ctx, 2, 8)
    return {"orders": 400 + int(luck(ctx, "orders") * 200), "seconds": seconds}


@app.task(retries=1)
async def train_recommendations(ctx: foliot.Context) -> float:
    """Its job names a queue that no worker serves, so that its run shows what Foliot says then."""
    return luck(ctx)


@app.task(queue="media", retries=2)
async def list_photos(ctx: foliot.Context) -> list[str]:
    await work(ctx, 0.5, 2)
    return [f"chair-{number:02}.jpg" for number in range(1, 9 + int(luck(ctx, "photos") * 12))]


@app.task(queue="media", retries=3, timeout=60)
async def resize_photo(ctx: foliot.Context, photo: str, width: int = 800) -> str:
    await work(ctx, 0.5, 5)
    if luck(ctx, "photo") < 0.03:
        raise OSError(f"{photo}: the image file is truncated")
    return f"{photo} at {width}"


@app.task(queue="media", retries=1)
async def build_gallery(ctx: foliot.Context) -> dict[str, Any]:
    await work(ctx, 1, 3)
    return {"page": "/collections/chairs"}


@app.task
async def publish(ctx: foliot.Context) -> str:
    await work(ctx, 0.5, 1.5)
    by = ctx.signal.get("by", "the web UI") if isinstance(ctx.signal, dict) else "nobody: the time was up"
    return f"published, approved by {by}"


@app.task(queue="reports", retries=0, timeout=120)
async def extract(ctx: foliot.Context, source: str) -> dict[str, Any]:
    await work(ctx, 1, 4)
    rows = int(luck(ctx, source) * 5_000)
    print(f"{rows} rows from {source}")
    return {"source": source, "rows": rows}


@app.task(queue="reports", retries=0, timeout=120)
async def check_totals(ctx: foliot.Context) -> dict[str, Any]:
    await work(ctx, 0.5, 2)
    if luck(ctx, "totals") < 0.2:
        raise ValueError("the totals of shop and bank differ by 12.50 EUR")
    return {"difference": 0}


@app.task(queue="reports", retries=1, timeout=120)
async def load_warehouse(ctx: foliot.Context) -> dict[str, Any]:
    seconds = await work(ctx, 1, 5)
    return {"tables": 6, "seconds": seconds}
