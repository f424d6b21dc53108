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
        return answer.text

Any other exception fails the attempt, and the task's options decide whether it is retried.
"""

from __future__ import annotations

import math


class Control(Exception):
    """The base class of exceptions that control a run."""


class RetryIn(Control):
    """Fails the attempt and retries after `seconds`, instead of the backoff. The attempt counts towards `retries`."""

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(reason or f"retry in {seconds:g} s")
        self.seconds = _checked(seconds)


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
        self.seconds = _checked(seconds)


def _checked(seconds: float) -> float:
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"seconds must be a number of at least 0, not {seconds!r}")
    return float(seconds)
