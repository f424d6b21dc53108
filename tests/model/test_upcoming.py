"""The future of many schedules: jobs with very many ticks leave room for the others."""

from __future__ import annotations

from foliot.model.ids import new_id
from foliot.model.job import job_timetable
from foliot.model.schedule import Schedule
from foliot.model.upcoming import Coming, Fires, crowding, fires_of

BEGIN = 1_700_000_000 // 86_400 * 86_400
DAY = 86_400


def job(every: str, runs_left: int | None = None) -> Coming:
    job_id = new_id()
    return Coming(job_id, job_timetable(Schedule(every=every), job_id, BEGIN, None), BEGIN, 0, runs_left)


def counted(fires: Fires, steps: int, seconds: float = 0.0) -> list[tuple[int, int]]:
    starts = [(at, seconds) for found in fires.by_job.values() for at in found]
    steady = [(rest, seconds) for rest in fires.steady.values()]
    return [
        (bucket.fires, bucket.slots) for bucket in crowding(starts, BEGIN, BEGIN + DAY, DAY // steps, steady=steady)
    ]


def test_every_tick_is_computed_where_there_are_few() -> None:
    found = fires_of([job("1h"), job("6h")], BEGIN + DAY, each=100)
    assert (found.steady, found.is_complete) == ({}, True)
    assert [fires for fires, _ in counted(found, 4)] == [7, 7, 7, 7]


def test_a_job_with_very_many_ticks_keeps_its_average_distance() -> None:
    dense, rare = job("10s"), job("6h")
    found = fires_of([dense, rare], BEGIN + DAY, each=500)
    assert (len(found.by_job[dense.id]), len(found.by_job[rare.id])) == (500, 4)
    rest = found.steady[dense.id]
    assert (rest.begin, rest.spacing) == (BEGIN + 5000, 10.0)
    assert 500 + rest.count(0, BEGIN + DAY) == DAY / 10
    assert [fires for fires, _ in counted(found, 4)] == [2161, 2161, 2161, 2161]


def test_ticks_that_are_not_computed_take_slots_as_well() -> None:
    found = fires_of([job("10s")], BEGIN + DAY, each=500)
    assert [slots for _, slots in counted(found, 4, seconds=25.0)][1:] == [3, 3, 3]


def test_a_job_with_few_runs_left_has_no_more_ticks() -> None:
    found = fires_of([job("10s", runs_left=50)], BEGIN + DAY, each=100)
    assert found.steady == {}
    assert [len(ticks) for ticks in found.by_job.values()] == [50]
