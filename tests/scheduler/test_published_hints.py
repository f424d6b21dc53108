from __future__ import annotations

from foliot.model.ids import new_id
from foliot.model.run import StartableRun
from foliot.scheduler.published_hints import LAST_REPEAT_SECONDS, PublishedHints


def test_a_run_is_announced_once_and_again_less_and_less_often() -> None:
    published, run = PublishedHints(), StartableRun(new_id(), 1, 0)
    announced = [now for now in range(40) if published.due("q", [run], float(now))]
    assert announced == [0, 1, 3, 7, 15, 23, 31, 39]
    assert announced[-1] - announced[-2] == LAST_REPEAT_SECONDS


def test_a_retried_run_is_announced_at_once() -> None:
    published, run_id = PublishedHints(), new_id()
    assert published.due("q", [StartableRun(run_id, 1, 0)], 0.0)
    assert published.due("q", [StartableRun(run_id, 2, 0)], 0.1)


def test_a_run_that_is_ready_no_more_is_forgotten() -> None:
    published, run = PublishedHints(), StartableRun(new_id(), 1, 0)
    assert published.due("q", [run], 0.0) == [run]
    assert published.due("q", [], 0.1) == []
    assert published._published == {}
    assert published.due("q", [run], 0.2) == [run]
    published.forget()
    assert published.due("q", [run], 0.3) == [run]
    assert published.due("other", [run], 0.3) == [run]
