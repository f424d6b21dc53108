"""A user's module, checked by `mypy --strict`. A line marked `type: ignore` must be an error, or mypy complains."""

from __future__ import annotations

from datetime import date, timedelta
from typing import assert_type

import foliot

app = foliot.App()


@app.task
async def send_invoice(customer_id: int, note: str = "") -> str:
    return f"{customer_id}{note}"


@app.task(queue="reports", retries=2)
def report(ctx: foliot.Context, day: date) -> list[int]:
    return [day.day]


def submit(handle: foliot.Handle, task: foliot.Task) -> None:
    assert_type(send_invoice.submit(customer_id=7).result(), str)
    assert_type(send_invoice.submit(7, note="x"), foliot.Handle[str])
    assert_type(report.submit(day=date(2026, 1, 31)).result(), list[int])
    report.with_options(priority=5).submit_at(timedelta(hours=1), day=date(2026, 1, 31))
    send_invoice.submit(customer_id="abc")  # type: ignore[arg-type]
    send_invoice.submit(custmer_id=7)  # type: ignore[call-arg]
    send_invoice.submit()  # type: ignore[call-arg]
    report.submit(day="2026-01-31")  # type: ignore[arg-type]
    report.with_options(priority=5).submit(days=1)  # type: ignore[call-arg]
    task.submit(anything=handle.result())


async def submit_async() -> None:
    assert_type(await (await send_invoice.submit_async(customer_id=7)).result_async(), str)
    await send_invoice.submit_async(customer_id=None)  # type: ignore[arg-type]
