"""Placeholders: their syntax, their values, and the position of errors."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from foliot.model.templates import PLACEHOLDERS_MAX, Names, TemplateError, Unrenderable, check, parse, render

BERLIN = ZoneInfo("Europe/Berlin")
VALUES: dict[str, Any] = {
    # The clocks went forward at two in the night before.
    "scheduled_for": datetime(2026, 3, 29, 3, 30, tzinfo=BERLIN),
    "previous_tick": None,
    "payload": {"customer": {"id": 7, "tags": ["a", "b"]}, "note": "it's", "day": "2026-01-31T10:00:00Z", "none": None},
    "results": {"ex-tract": {"rows": [{"n": 1}]}},
    "signal": {"by": "ada"},
    "attempt": 2,
    "is_backfill": True,
    "job": "nightly",
}
KNOWN = Names(has_tick=True, steps=["ex-tract"])


def rendered(text: str) -> str:
    check(text, KNOWN)
    return render(text, VALUES, lambda _, value: value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no placeholder, { or }} or {x}", "no placeholder, { or }} or {x}"),
        ("{{ scheduled_for }}", "2026-03-29T03:30:00+02:00"),
        ("{{scheduled_for|date}}/{{ scheduled_for | time }}", "2026-03-29/03:30:00"),
        (
            '{{ scheduled_for | format "%d.%m.%y %A %B %j %V %H:%M %z %%" }}',
            "29.03.26 Sunday March 088 13 03:30 +0200 %",
        ),
        ('{{ scheduled_for | format("%Y-%m") }}', "2026-03"),
        ("{{ scheduled_for | format '%I %p' }}", "03 AM"),
        ("{{ scheduled_for | epoch }}", "1774747800"),
        ('{{ scheduled_for | in_zone "UTC" | iso }}', "2026-03-29T01:30:00+00:00"),
        # A day is a calendar day; an hour is an hour of real time.
        ('{{ scheduled_for | add "-1d" }}', "2026-03-28T03:30:00+01:00"),
        ('{{ scheduled_for | add "-24h" }}', "2026-03-28T02:30:00+01:00"),
        ('{{ scheduled_for | add "-1h" }}', "2026-03-29T01:30:00+01:00"),
        ('{{ scheduled_for | add "+1w2d" | date }}', "2026-04-07"),
        ('{{ previous_tick | date | default "none" }}', "none"),
        ('{{ previous_tick | default "2026-01-01" | date }}', "2026-01-01"),
        ("{{ payload.customer.id }} {{ payload.customer.tags[1] }} {{ payload['note'] }}", "7 b it's"),
        ("{{ payload.customer | json }}", '{"id":7,"tags":["a","b"]}'),
        ("{{ payload.note | json }} {{ payload.note | quote }}", "\"it's\" 'it'\"'\"'s'"),
        ("{{ payload.day | format '%d/%m' }}", "31/01"),
        ('{{ payload.none | default "-" }} {{ payload.missing.part | default "+" }}', "- +"),
        ("{{ results.ex-tract.rows[0].n }} {{ signal.by }}", "1 ada"),
        ("{{ steps.ex-tract.result.rows[0].n }} {{ steps['ex-tract'].result | json }}", '1 {"rows":[{"n":1}]}'),
        ("{{ attempt }} {{ is_backfill }} {{ job }}", "2 true nightly"),
        ("docker ps --format '{{ \"{{\" }}.Names}}'", "docker ps --format '{{.Names}}'"),
        (r'{{ "a \" }} b" }}', 'a " }} b'),
    ],
)
def test_a_placeholder_becomes_its_value(text: str, expected: str) -> None:
    assert rendered(text) == expected


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("{{ schedule_for }}", 1, "did you mean 'scheduled_for'"),
        ("day {{ scheduled_for", 5, "not closed"),
        ("{{ scheduled_for | date", 1, "not closed"),
        ('{{ "text }}', 4, "quoted text is not closed"),
        ("{{.Names}}", 3, 'write {{ "{{" }}'),
        ("{{}}", 3, "expected a name"),
        ("{{ scheduled_for date }}", 18, "expected | or }}"),
        ("{{ scheduled_for | }}", 20, "expected the name of a filter"),
        ("{{ scheduled_for | dat }}", 20, "did you mean 'date'"),
        ("{{ scheduled_for | format }}", 20, "needs an argument"),
        ('{{ scheduled_for | date "x" }}', 20, "takes no argument"),
        ('{{ scheduled_for | format "%Q" }}', 20, "there is no '%Q'"),
        ('{{ scheduled_for | format "%" }}', 20, "there is no '%'"),
        ('{{ scheduled_for | add "soon" }}', 20, "can't read 'soon'"),
        ('{{ scheduled_for | in_zone "Mars/Base" }}', 20, "Mars/Base"),
        ("{{ attempt | date }}", 14, "needs a time"),
        ('{{ scheduled_for | date | add "1d" }}', 27, "needs a time"),
        ("{{ attempt.x }}", 1, "has no parts"),
        ("{{ payload }}", 1, "needs a part"),
        ("{{ payload. }}", 13, "parts of payload"),
        ("{{ results.load.rows }}", 1, "the steps before this one: ex-tract"),
        ("{{ steps.load.result.rows }}", 1, "the steps before this one: ex-tract"),
        ("{{ steps.ex-tract.status }}", 1, "such as steps.extract.result.rows"),
        ("{{ steps }}", 1, "such as steps.extract.result.rows"),
        ("{{ a; rm }}", 5, "can't stand in a placeholder"),
        ("{{ __class__ }}", 1, "there is no name"),
        ("x\n{{ payload.__class__.__init__ | call }}", 35, "there is no filter"),
    ],
)
def test_a_wrong_placeholder_is_refused_with_its_position(text: str, position: int, says: str) -> None:
    with pytest.raises(TemplateError) as caught:
        check(text, KNOWN)
    assert caught.value.position == position
    assert says in caught.value.detail


def test_only_a_recurring_job_has_a_tick() -> None:
    with pytest.raises(TemplateError, match="only a recurring job has scheduled_for"):
        check("{{ scheduled_for | date }}", Names(has_tick=False))
    check('{{ scheduled_for | date | default "today" }}', Names(has_tick=False))
    check("{{ scheduled_for | date }}", Names(has_tick=None))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{{ previous_tick | date }}", "has no value in this run"),
        ("{{ payload.missing }}", "there is no 'missing'"),
        ("{{ payload.customer.tags[2] }}", "there is no '2'"),
        ("{{ payload.note | date }}", "is not an ISO 8601 time"),
        ("{{ payload.note.format }}", "there is no 'format'"),
        ('{{ scheduled_for | add "999999w" | date }}', "out of range"),
    ],
)
def test_a_placeholder_without_a_value_fails_the_rendering(text: str, says: str) -> None:
    with pytest.raises(Unrenderable, match=says):
        rendered(text)


@pytest.mark.parametrize(
    "text",
    [
        "{{ payload.a | default 'b' }}" * PLACEHOLDERS_MAX + "{" * 100_000,
        "{{ " + "payload." * 100_000,
        "{{ attempt" + " | json" * 100_000 + " }}",
        '{{ "' + '\\"' * 500_000,
        "{{ " + " " * 1_000_000,
        "{{ attempt }}" * 100_000,
        "{{ attempt | default '" + "{{ " * 200_000 + "' }}",
    ],
)
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    began_at = time.process_time()
    with suppress(TemplateError):
        parse(text)
    assert time.process_time() - began_at < 2
