"""The lines that StatsD gets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from foliot.exporters.statsd_lines import DURATIONS_MAX, JOBS_MAX, PACKET_BYTES, RATE_OF, StatsdLines, job_of, packets
from foliot.model.ids import new_id
from foliot.model.states import RunState
from foliot.store.exports import Ending

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
JOB = UUID(int=7)


def ending(
    state: RunState = RunState.SUCCEEDED,
    *,
    task: str = "send",
    name: str | None = None,
    job_id: UUID | None = None,
    reason: str | None = None,
    seconds: float | None = 0.25,
) -> Ending:
    started = None if seconds is None else AT - timedelta(seconds=seconds)
    return Ending(new_id(), name, task, "mail", state, reason, 1, job_id, None, started, AT)


def lines_of(endings: Sequence[Ending], *, has_tags: bool = False) -> list[str]:
    return list(StatsdLines(has_tags=has_tags).of_endings(endings))


def test_endings_are_counted_by_status_and_as_success_or_failure() -> None:
    endings = [
        ending(),
        ending(),
        ending(RunState.FAILED),
        ending(RunState.FAILED, reason="timeout"),
        ending(RunState.CANCELLED, seconds=None),
        ending(RunState.SKIPPED, seconds=None),
    ]
    counts = [line for line in lines_of(endings) if line.endswith("|c")]
    assert sorted(counts) == [
        "jobs.CANCELLED.count:1|c",
        "jobs.FAILED.count:1|c",
        "jobs.SKIPPED.count:1|c",
        "jobs.SUCCESS.count:2|c",
        "jobs.TIMEOUT.count:1|c",
        "jobs.failure:2|c",
        "jobs.success:2|c",
    ]


def test_a_duration_carries_the_name_of_the_recurring_job_or_else_of_the_task() -> None:
    endings = [ending(name="nightly report", job_id=JOB), ending(name="free text")]
    assert [line for line in lines_of(endings) if "|ms" in line] == [
        "jobs.nightly_report.duration:250.000|ms",
        "jobs.send.duration:250.000|ms",
    ]


def test_a_run_that_never_started_has_no_duration() -> None:
    assert not [line for line in lines_of([ending(RunState.CANCELLED, seconds=None)]) if "|ms" in line]


def test_many_durations_are_sampled_at_a_rate_that_the_server_knows() -> None:
    durations = [line for line in lines_of([ending()] * (4 * DURATIONS_MAX)) if "|ms" in line]
    assert len(durations) == DURATIONS_MAX
    assert set(durations) == {"jobs.send.duration:250.000|ms|@0.25"}


def test_the_success_rate_is_that_of_the_last_runs_of_a_job() -> None:
    lines = StatsdLines(has_tags=False)
    list(lines.of_endings([ending(RunState.FAILED)] * RATE_OF))
    assert "jobs.send.success_rate:0.2500|g" in lines.of_endings([ending()] * (RATE_OF // 4))
    # The end of a run that was cancelled is neither.
    assert not [line for line in lines.of_endings([ending(RunState.CANCELLED)]) if "success_rate" in line]


def test_the_success_rates_kept_are_bounded() -> None:
    lines = StatsdLines(has_tags=False)
    list(lines.of_endings([ending(RunState.FAILED, task=f"task_{number}") for number in range(JOBS_MAX + 1)]))
    assert "jobs.task_0.success_rate:1.0000|g" in lines.of_endings([ending(task="task_0")])
    assert f"jobs.task_{JOBS_MAX}.success_rate:0.5000|g" in lines.of_endings([ending(task=f"task_{JOBS_MAX}")])


def test_tags_carry_the_names_in_the_form_of_dogstatsd() -> None:
    assert lines_of([ending(name="nightly", job_id=JOB)], has_tags=True) == [
        "jobs.SUCCESS.count:1|c|#job:nightly,task:send,queue:mail,status:SUCCESS",
        "jobs.success:1|c|#job:nightly,task:send,queue:mail,status:SUCCESS",
        "jobs.duration:250.000|ms|#job:nightly,task:send,queue:mail,status:SUCCESS",
        "jobs.success_rate:1.0000|g|#job:nightly",
    ]


@pytest.mark.parametrize("name", ["a:1|c", "a\nb:1|c", "a.b", "a@b", "a#b", "ä\u202e", "x" * 10_000])
def test_a_hostile_name_can_neither_forge_a_line_nor_overflow_a_packet(name: str) -> None:
    line = lines_of([ending(name=name, job_id=JOB)])[2]
    assert line == f"jobs.{job_of(ending(name=name, job_id=JOB))}.duration:250.000|ms"
    assert len(line) < 200
    assert not set(line.removeprefix("jobs.").partition(".duration")[0]) & set(":|@#\n. ")


def test_the_depth_of_all_queues_is_a_gauge() -> None:
    assert list(StatsdLines(has_tags=False).of_queues({"mail": 3, "heavy": 4})) == ["jobs.queue_depth:7|g"]
    assert list(StatsdLines(has_tags=True).of_queues({"mail": 3})) == [
        "jobs.queue_depth:3|g",
        "jobs.queue_depth_of:3|g|#queue:mail",
    ]


def test_packets_carry_whole_lines_and_fit_into_a_frame() -> None:
    lines = [f"jobs.task_{number}.duration:1.000|ms" for number in range(1_000)]
    found = list(packets(lines))
    assert b"\n".join(found).decode().split("\n") == lines
    assert max(map(len, found)) <= PACKET_BYTES < len(found[0]) + 50
