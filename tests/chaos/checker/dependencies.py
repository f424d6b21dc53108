"""Invariant of jobs with `dependencies`: one-off jobs that wait for others, recurring jobs that wait for the run of the
same instant, and jobs without a schedule that the success of others fires."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.checker.attempts import is_claim
from tests.chaos.checker.history import SECOND, Change, History, Job, Run
from tests.chaos.checker.invariant import invariant

SEEN = 2 * SECOND
"""A success is this much later than a new job, so it must fire the job."""


@invariant(45)
def dependents_follow_success(history: History) -> Iterator[str]:
    """A run with `dependencies` starts only after all of them succeeded, is skipped if one did not, and none is
    stranded."""
    ends = {change.run_id: change for change in history.changes if change.kind == "finish"}
    wanted = {job.id: len(job.dependencies) for job in history.jobs}
    for run in history.runs:
        if run.upstream and not run.parent_id:
            # A recurring job may still look for some of the runs that it waits for; I18 covers those.
            yield from _of_run(history, run, ends, knows_all=len(run.upstream) >= wanted.get(run.job_id, 0))
    for job in history.jobs:
        if job.is_fired:
            yield from _of_fired(history, job, ends)


def _of_run(history: History, run: Run, ends: dict[str, Change], *, knows_all: bool) -> Iterator[str]:
    before = [ends.get(upstream) for upstream in run.upstream]
    for change in history.changes_of.get(run.id, ()):
        if is_claim(change) and any(end is None or end.after != "succeeded" or end.seq > change.seq for end in before):
            states = [end.after if end else "live" for end in before]
            yield f"run {run.id} started at {change.at} after {states}"
            break
    has_failed = any(end is not None and end.after != "succeeded" for end in before)
    if has_failed and not run.is_live and run.state not in ("skipped", "cancelled"):
        yield f"run {run.id} is {run.state}, and one of its dependencies did not succeed"
    if run.state == "skipped" and not has_failed:
        yield f"run {run.id} was skipped, and all its dependencies succeeded"
    if run.is_live and run.state == "waiting" and knows_all and all(before):
        yield f"run {run.id} waits, and all its dependencies have ended"


def _of_fired(history: History, job: Job, ends: dict[str, Change]) -> Iterator[str]:
    """The job has the overlap policy `allow_all`."""
    used = Counter(upstream for run in history.runs if run.job_id == job.id for upstream in run.upstream)
    for upstream, number in used.items():
        if number > 1:
            yield f"job {job.name} was fired {number} times by run {upstream}"
    # Several runs of one job that end in one transaction count once.
    firing = {ends[upstream].transaction for upstream in used if upstream in ends}
    since = job.versions[0].made_at + SEEN
    succeeded: dict[str, list[Change]] = {
        dependency: [
            ends[run.id]
            for run in history.runs
            if run.job_id == dependency and run.state == "succeeded" and run.id in ends and ends[run.id].at > since
        ]
        for dependency in job.dependencies
    }
    if len(succeeded) == 1:
        # Each success counts.
        for end in next(iter(succeeded.values())):
            if end.transaction not in firing:
                yield f"job {job.name} was not fired by run {end.run_id}, which succeeded at {end.at}"
    elif all(succeeded.values()):
        latest = [max(found, key=lambda end: end.seq) for found in succeeded.values()]
        if not any(end.transaction in firing for end in latest):
            yield f"job {job.name} was not fired, although all its dependencies have succeeded since it last was"
