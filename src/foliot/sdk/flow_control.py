"""What a task raises to say what is to become of its run.

    @app.task
    def fetch(url: str) -> str:
        answer = get(url)
        if answer.status == 429:
            raise foliot.RetryIn(60, "asked to slow down")
        if answer.status == 404:
            raise foliot.Fail(f"{url} is gone")
        if answer.status == 202:
            raise foliot.Snooze(30)
        return answer.text

Anything else that a task raises is a failure, and its options decide whether it is tried again.
"""

from __future__ import annotations

import math


class Control(Exception):
    """The root of what is raised for its meaning, not for an error."""


class RetryIn(Control):
    """The attempt failed; the next one comes in so many seconds, whatever the back-off says. It counts as any other:
    retries run out."""

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(reason or f"asked to be tried again in {seconds:g} s")
        self.seconds = _checked(seconds)


class Fail(Control):
    """The run has failed for good: no retry would help."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class Snooze(Control):
    """Not now. The attempt ends, frees its slot, and does not count; the run comes back in so many seconds, up to
    `max_snoozes` times."""

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(reason)
        self.seconds = _checked(seconds)


def _checked(seconds: float) -> float:
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"seconds must be a number from 0 up, not {seconds!r}")
    return float(seconds)
