"""Durable functions on the bench: time is moved by hand, signals are sent by the test, and called jobs run inline."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import foliot
from foliot.testing import inline

app = foliot.App()
charged: list[str] = []


async def charge(order_id: int) -> str:
    charged.append(foliot.step_key())
    return f"payment {order_id}"


@app.task
async def ship(payment: str) -> str:
    if payment == "payment 13":
        raise foliot.Fail("no such address")
    return f"shipped for {payment}"


@app.task(retries=2, backoff=foliot.Backoff(kind="fixed", base_seconds=10))
async def order(ctx: foliot.Context, order_id: int) -> str:
    payment = await ctx.step("charge", charge, order_id)
    if ctx.attempt == 1 and order_id == 8:
        raise RuntimeError("the worker was unwell")
    await ctx.sleep("1h")
    approval = await ctx.wait_signal("approved", timeout="2d")
    shipped = await ctx.call(ship, payment=payment)
    return f"{shipped}, approved by {approval['by']}"


def test_a_function_goes_through_its_steps_as_time_passes() -> None:
    charged.clear()
    with inline(app) as bench:
        job = order.submit(order_id=8)
        bench.run()
        bench.advance(10)
        bench.advance(timedelta(hours=1))
        assert bench.jobs(ship) == []
        bench.signal(job.id, "approved", {"by": "ada"})
        bench.run()
        assert job.result() == "shipped for payment 8, approved by ada"
    assert charged == [f"{job.id}:charge"]


def test_a_signal_may_come_early_and_may_come_too_late() -> None:
    with inline(app) as bench:
        early, late = order.submit(order_id=1), order.submit(order_id=2)
        bench.signal(early.id, "approved", {"by": "bob"})
        bench.advance(timedelta(days=3))
        assert early.result() == "shipped for payment 1, approved by bob"
        with pytest.raises(foliot.JobFailed, match="SignalTimeout"):
            late.result()


def test_a_called_job_that_fails_fails_its_caller() -> None:
    with inline(app) as bench:
        job = order.submit(order_id=13)
        bench.signal(job.id, "approved", {"by": "bob"})
        bench.advance(timedelta(hours=1))
        with pytest.raises(foliot.JobFailed, match=r"ChildFailed.*no such address"):
            job.result()


def test_several_waits_at_once_and_a_plain_function() -> None:
    durable = foliot.App()

    @durable.task
    def double(number: int) -> int:
        return 2 * number

    @durable.task
    async def fan_out(ctx: foliot.Context) -> list[int]:
        async with asyncio.TaskGroup() as group:
            called = [group.create_task(ctx.call(f"double {n}", double, number=n)) for n in range(3)]
        return [one.result() for one in called]

    @durable.task
    def plain(ctx: foliot.Context) -> Any:
        ctx.sync.sleep(60)
        return [ctx.sync.step("double", double, 4), ctx.sync.call(fan_out)]

    with inline(durable) as bench:
        job = plain.submit()
        bench.advance(60)
        assert job.result() == [8, [0, 2, 4]]


def test_wrong_calls_fail_with_a_clear_error() -> None:
    wrong = foliot.App()

    @wrong.task(retries=3)
    async def twice(ctx: foliot.Context) -> None:
        await ctx.step("charge", charge, 1)
        await ctx.step("charge", charge, 2)

    @wrong.task(retries=3)
    async def swallows(ctx: foliot.Context) -> str:
        try:
            await ctx.sleep("1h")
        except BaseException:
            return "caught"
        return "slept"

    @wrong.task(retries=3)
    async def nested(ctx: foliot.Context) -> None:
        async def inner() -> None:
            await ctx.sleep("1h")

        await ctx.step("outer", inner)

    @wrong.task(retries=3)
    def forgets_sync(ctx: foliot.Context) -> None:
        ctx.step("charge", charge, 1)  # type: ignore[unused-coroutine]

    @wrong.task(retries=3)
    async def raises_by_itself(ctx: foliot.Context) -> None:
        raise foliot.Suspended

    expected = {
        "twice": "used this name before",
        "swallows": "SuspensionSwallowed",
        "nested": "can't use steps or waits of its own",
        "forgets_sync": r"ctx\.sync\.step",
        "raises_by_itself": "raised foliot.Suspended by itself",
    }
    for name, message in expected.items():
        with inline(wrong) as bench:
            job = wrong.tasks[name].submit()
            bench.run()
            with pytest.raises(foliot.JobFailed, match=message):
                job.result()
            assert bench.jobs()[0].attempt == 1


def test_a_condition_is_polled_with_growing_waits_and_recorded_once() -> None:
    durable, looks = foliot.App(), []

    async def look(wanted: int) -> str | None:
        looks.append(wanted)
        return "there" if len(looks) == 4 else None

    @durable.task
    async def sensor(ctx: foliot.Context) -> str:
        found = await ctx.poll("file", look, 7, every=10, at_most="30s")
        await ctx.sleep(60)
        return found

    with inline(durable) as bench:
        job = sensor.submit()
        started = bench.now
        bench.run()
        for wait, enough in ((10, 2), (20, 3), (30, 4)):
            bench.advance(wait - 1)
            assert len(looks) == enough - 1, "it looked too early"
            bench.advance(1)
            assert len(looks) == enough
        bench.advance(60)
        assert job.result() == "there"
        assert (bench.now - started).total_seconds() == 120
    assert looks == [7] * 4


def test_polling_ends_when_its_time_is_up_and_a_plain_function_polls_as_well() -> None:
    durable, looks = foliot.App(), []

    def look() -> bool:
        looks.append(1)
        return False

    @durable.task
    def sensor(ctx: foliot.Context) -> bool:
        return ctx.sync.poll("door", look, every=60, timeout="5m")

    with inline(durable) as bench:
        job = sensor.submit()
        bench.advance(timedelta(hours=1))
        with pytest.raises(
            foliot.JobFailed, match=r"PollTimeout: 'door' returned nothing within 300 s, polled 3 times"
        ):
            job.result()
    assert len(looks) == 3


def test_a_task_that_finds_nothing_to_do_is_skipped_with_its_reason() -> None:
    durable = foliot.App()

    def nothing() -> None:
        raise foliot.Skip("no orders today")

    @durable.task(retries=5)
    async def report(ctx: foliot.Context) -> None:
        await ctx.step("look", nothing)

    with inline(durable) as bench:
        job = report.submit()
        bench.run()
        assert job.status() == "skipped"
        with pytest.raises(foliot.JobFailed, match="Skip: no orders today"):
            job.result()
