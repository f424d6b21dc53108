"""Exceptions that a task raises to control its run.

    @app.task
    def fetch(url: str) -> str:
        answer = get(url)
        if answer.status == 429:
            raise foliot.RetryIn(60, "rate limited")
        if answer.status == 404:
            raise foliot.Fail(f"{url} is gone")
        if answer.status == 202:
            raise foliot.Snooze(30)
        if answer.status == 204:
            raise foliot.Skip("nothing to fetch")
        return answer.text

Any other exception fails the attempt, and the task's options decide whether it is retried.
"""

from __future__ import annotations

import math
from uuid import UUID


class Control(Exception):
    """The base class of exceptions that control a run."""


class RetryIn(Control):
    """Fails the attempt and retries after `seconds`, instead of the backoff. The attempt counts towards `retries`."""

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(reason or f"retry in {seconds:g} s")
        self.seconds = checked_seconds(seconds)


class Fail(Control):
    """Fails the run for good, without retries."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class Snooze(Control):
    """Ends the attempt and runs it again after `seconds`.

    The attempt frees its slot and does not count towards `retries`. A run can snooze up to `max_snoozes` times.
    """

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(reason)
        self.seconds = checked_seconds(seconds)


class Skip(Control):
    """Ends the run as skipped, with a reason and without retries. Steps that need its success are skipped, too."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


class StepError(Fail):
    """A step of a durable function can't be run or recorded as the code asks for it."""


class SignalTimeout(Fail, TimeoutError):
    """The signal that a function waits for did not arrive in time. Uncaught, it fails the run without retries."""


class Rejected(Fail):
    """The signal that a function waits for says no. Uncaught, it fails the run without retries."""


class PollTimeout(Fail, TimeoutError):
    """The function that is polled returned nothing in time. Uncaught, it fails the run without retries."""


class ChildFailed(Fail):
    """A run that a function called did not succeed. Uncaught, it fails the calling run without retries."""

    def __init__(self, name: str, run_id: UUID | None, kind: str, message: str, state: str) -> None:
        super().__init__(f"{name} ({run_id}) {state or 'failed'}: {kind}: {message}")
        self.name = name
        self.run_id = run_id
        self.kind = kind
        """The kind of the called run's error, such as `ValueError`."""
        self.message = message
        self.state = state
        """`failed`, `cancelled`, `skipped`, or `lost` if the run is no longer known."""


class Suspended(BaseException):
    """Ends a durable function in the middle: its run gives up its slot until it may go on. Never catch it."""


class Stopped(BaseException):
    """Ends a durable function whose run no longer belongs to this worker. Never catch it."""


def checked_seconds(seconds: float) -> float:
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"seconds must be a number of at least 0, not {seconds!r}")
    return float(seconds)
