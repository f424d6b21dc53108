"""Schedules that make no sense are refused."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.errors import Invalid
from foliot.model.schedule import Schedule, timetable_of


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "cron"),
        ({"cron": "* * * * *", "every": "1m"}, "cron"),
        ({"cron": "* * * * *", "timezone": "Mars/Base"}, "timezone"),
        ({"every": "soon"}, "every"),
        ({"every": "0s"}, "every"),
        ({"cron": "0 0 30 2 *"}, "day-of-month"),
    ],
)
def test_an_invalid_schedule_is_refused_with_its_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        timetable_of(Schedule(**fields), "", 0, None)
    assert caught.value.field == field
