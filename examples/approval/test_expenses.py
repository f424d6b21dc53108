"""The tests of the flow. They need no server; the fixture comes with Foliot."""

from datetime import timedelta

from expenses import expense
from foliot.testing import Bench


def test_a_small_expense_is_paid_at_once(foliot_bench: Bench) -> None:
    assert expense.submit(purpose="coffee", amount=12).result().startswith("paid 12 for coffee")


def test_a_large_expense_waits_for_a_person(foliot_bench: Bench) -> None:
    job = expense.submit(purpose="conference", amount=900)
    foliot_bench.advance(timedelta(days=3))
    assert job.status() == "pending"
    foliot_bench.signal(job.id, "approval", {"by": "grace"})
    assert job.result() == "paid 900 for conference, approved by grace"


def test_silence_declines_after_a_week(foliot_bench: Bench) -> None:
    job = expense.submit(purpose="yacht", amount=90_000)
    foliot_bench.advance(timedelta(days=8))
    assert job.result() == "declined: nobody answered within a week"
