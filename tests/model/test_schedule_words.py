from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from foliot.model.schedule import Schedule
from foliot.model.schedule_words import in_words

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"every": "90s"}, "every 1 minute and 30 seconds"),
        ({"every": "1d"}, "every day"),
        ({"cron": "0 9 * * MON-FRI"}, "at 09:00, on Monday to Friday"),
        ({"cron": ("0 9 * * *", "30 17 * * FRI")}, "at 09:00; and at 17:30, on Friday"),
        ({"cron": "CRON_TZ=Europe/Berlin 30 2 * * *"}, "at 02:30"),
        ({"times": (NOON,)}, "at one instant"),
        ({"every": "1h", "times": (NOON, NOON.replace(hour=13))}, "every hour; and at 2 instants"),
        ({"after": ("extract",)}, "after extract"),
        ({"cron": "0 3 * * *", "after": ("a", "b", "c", "d", "e")}, "at 03:00, after a, b, c and 2 more"),
    ],
)
def test_schedules_read_as_a_sentence(schedule: dict[str, Any], words: str) -> None:
    assert in_words(Schedule(**schedule), "seed") == words


def test_a_hashed_field_shows_the_time_of_its_job() -> None:
    schedule = Schedule(cron="H H * * *")
    assert in_words(schedule, "one") == in_words(schedule, "one")
    assert in_words(schedule, "one") != in_words(schedule, "two")
    assert "H" not in in_words(schedule, "one")
