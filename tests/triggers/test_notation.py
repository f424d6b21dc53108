"""Expressions of other schedulers: their ticks there, and advice for forms that are not supported here."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter  # type: ignore[import-untyped]
from cronsim import CronSim

from foliot.errors import Invalid
from foliot.triggers.base import fire_times, to_datetime
from foliot.triggers.cron import parse_cron
from foliot.triggers.cron_fields import CronError
from foliot.triggers.notation import read_notation
from tests.support.steps import steps_of
from tests.triggers.oracle import instant_of

START = instant_of(2026)
MEGABYTE = 1_000_000


def times_of(expression: str, count: int = 4, zone: str | None = None, after: int = START - 1) -> list[str]:
    trigger = parse_cron(expression, ZoneInfo(zone) if zone else None)
    return [
        f"{to_datetime(instant):%Y-%m-%d %H:%M:%S}".removesuffix(":00") for instant in fire_times(trigger, after, count)
    ]


# 2026-01-01 is a Thursday. Each line follows the documentation of the scheduler.


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        # Quartz
        ("0 0 12 * * ?", ["2026-01-01 12:00", "2026-01-02 12:00"]),
        ("0 15 10 ? * *", ["2026-01-01 10:15", "2026-01-02 10:15"]),
        ("0 15 10 * * ? 2027", ["2027-01-01 10:15", "2027-01-02 10:15"]),
        ("0 15 10 ? * MON-FRI 2026-2027", ["2026-01-01 10:15", "2026-01-02 10:15", "2026-01-05 10:15"]),
        ("0 0/5 14,18 * * ?", ["2026-01-01 14:00", "2026-01-01 14:05"]),
        ("0 10,44 14 ? 3 WED", ["2026-03-04 14:10", "2026-03-04 14:44", "2026-03-11 14:10"]),
        ("0 15 10 L * ?", ["2026-01-31 10:15", "2026-02-28 10:15"]),
        ("0 15 10 L-2 * ?", ["2026-01-29 10:15", "2026-02-26 10:15"]),
        ("0 15 10 LW * ?", ["2026-01-30 10:15", "2026-02-27 10:15"]),
        ("0 15 10 L-2W * ?", ["2026-01-29 10:15", "2026-02-26 10:15", "2026-03-30 10:15"]),
        ("0 15 10 ? * FRIL", ["2026-01-30 10:15", "2026-02-27 10:15"]),
        ("0 15 10 ? * FRI#3", ["2026-01-16 10:15", "2026-02-20 10:15"]),
        ("0 11 11 11 11 ?", ["2026-11-11 11:11", "2027-11-11 11:11"]),
        ("0 0 22-2 ? * FRI-SUN", ["2026-01-02 00:00", "2026-01-02 01:00", "2026-01-02 02:00", "2026-01-02 22:00"]),
        ("0 0 0 1 NOV-FEB ?", ["2026-01-01 00:00", "2026-02-01 00:00", "2026-11-01 00:00", "2026-12-01 00:00"]),
        ("0 0 0 29 2 ? 2026/2", ["2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00"]),
        ("0 0 0 1 1 ? *", ["2026-01-01 00:00", "2027-01-01 00:00"]),
        # Spring
        ("0 0 * * * *", ["2026-01-01 00:00", "2026-01-01 01:00"]),
        ("*/10 * * * * *", ["2026-01-01 00:00", "2026-01-01 00:00:10"]),
        ("0 0/30 8-10 * * *", ["2026-01-01 08:00", "2026-01-01 08:30", "2026-01-01 09:00"]),
        ("0 0 9-17 * * MON-FRI", ["2026-01-01 09:00", "2026-01-01 10:00"]),
        ("0 0 0 25 DEC ?", ["2026-12-25 00:00", "2027-12-25 00:00"]),
        ("0 0 0 * * 5L", ["2026-01-30 00:00", "2026-02-27 00:00"]),
        ("0 0 0 ? * MON#1", ["2026-01-05 00:00", "2026-02-02 00:00"]),
        ("@midnight", ["2026-01-01 00:00", "2026-01-02 00:00"]),
        # robfig/cron and Kubernetes
        ("30 3-6,20-23 * * *", ["2026-01-01 03:30", "2026-01-01 04:30"]),
        ("CRON_TZ=Asia/Tokyo 30 04 * * *", ["2026-01-01 19:30", "2026-01-02 19:30"]),
        ("TZ=America/New_York 0 6 * * ?", ["2026-01-01 11:00", "2026-01-02 11:00"]),
        ("tz=Europe/Berlin @daily", ["2026-01-01 23:00", "2026-01-02 23:00"]),
        ("@annually", ["2026-01-01 00:00", "2027-01-01 00:00"]),
        # AWS EventBridge: six fields with a year, and 1 is Sunday
        ("cron(0 10 * * ? *)", ["2026-01-01 10:00", "2026-01-02 10:00"]),
        ("cron(15 12 * * ? 2027)", ["2027-01-01 12:15", "2027-01-02 12:15"]),
        ("cron(0 18 ? * MON-FRI *)", ["2026-01-01 18:00", "2026-01-02 18:00", "2026-01-05 18:00"]),
        ("cron(0 18 ? * 2-6 *)", ["2026-01-01 18:00", "2026-01-02 18:00", "2026-01-05 18:00"]),
        ("cron(0 8 ? * 3#1 *)", ["2026-01-06 08:00", "2026-02-03 08:00"]),
        ("cron(0 8 ? * 6L *)", ["2026-01-30 08:00", "2026-02-27 08:00"]),
        ("cron(0/10 * ? * MON-FRI *)", ["2026-01-01 00:00", "2026-01-01 00:10"]),
        ("CRON(0 8 1 * ? 2026-2027)", ["2026-01-01 08:00", "2026-02-01 08:00"]),
        # Vixie, cronie, croner
        ("23 0-23/2 * * *", ["2026-01-01 00:23", "2026-01-01 02:23"]),
        ("5 4 * * sun", ["2026-01-04 04:05", "2026-01-11 04:05"]),
        ("0 0 * * 7", ["2026-01-04 00:00", "2026-01-11 00:00"]),
        ("0 0 1,15 * WED", ["2026-01-01 00:00", "2026-01-07 00:00", "2026-01-14 00:00", "2026-01-15 00:00"]),
        ("0 0 13 * +FRI", ["2026-02-13 00:00", "2026-03-13 00:00", "2026-11-13 00:00"]),
        ("0 0 * * Friday#L", ["2026-01-30 00:00", "2026-02-27 00:00"]),
        # Celery
        ("0 */3,8-17 * * *", ["2026-01-01 00:00", "2026-01-01 03:00", "2026-01-01 06:00", "2026-01-01 08:00"]),
        ("*/10 3,17,22 * * thu,fri", ["2026-01-01 03:00", "2026-01-01 03:10"]),
        # APScheduler
        ("0 17 * * mon-fri", ["2026-01-01 17:00", "2026-01-02 17:00", "2026-01-05 17:00"]),
    ],
)
def test_an_expression_fires_as_documented_by_its_scheduler(expression: str, times: list[str]) -> None:
    assert times_of(expression, len(times)) == times


@pytest.mark.parametrize(
    "expression",
    [
        *[
            "*/5 * * * *",
            "0 0 * * 7",
            "0 9-17/2 * * 1-5",
            "15 14 1 * *",
            "0 22 * * 1-5",
            "5 0 * 8 *",
            "0 0 29 2 *",
            "0 0 L * *",
        ],
        *["0 4 8-14 * *", "0 0 1,15 * 3", "1-59/2 * * * *", "0 0 31 * *", "0 0 * jan,jul sun", "0 0 * * 5#3"],
    ],
)
def test_croniter_and_cronsim_agree_on_common_expressions(expression: str) -> None:
    start = to_datetime(START)
    steps = croniter(expression, start)
    by_croniter = [int(steps.get_next(datetime).timestamp()) for _ in range(40)]
    by_cronsim = [int(moment.timestamp()) for moment in islice(CronSim(expression, start), 40)]
    assert fire_times(parse_cron(expression), START, 40) == by_croniter == by_cronsim


@pytest.mark.parametrize("hours", ["22-4", "23-0", "20-6/2", "18-2/5"])
def test_croniter_agrees_on_ranges_past_midnight(hours: str) -> None:
    steps = croniter(f"0 {hours} * * *", to_datetime(START))
    assert fire_times(parse_cron(f"0 {hours} * * *"), START, 60) == [
        int(steps.get_next(datetime).timestamp()) for _ in range(60)
    ]


# Expressions that do not mean what they seem to say


@pytest.mark.parametrize(
    ("expression", "bad", "instead"),
    [
        ("*/90 * * * *", "*/90", "every 90 minutes cannot be written in cron: use every: 90m"),
        ("* */61 * * * *", "*/61", "use every: 61m"),
        ("*/61 * * * * *", "*/61", "every 61 seconds cannot be written in cron: use every: 61s"),
        ("0 */25 * * *", "*/25", "use every: 25h"),
        ("0 */48 * * *", "*/48", "use every: 48h"),
        ("0 0 */40 * *", "*/40", "use every: 40d"),
        ("0 0 */32 * *", "*/32", "use every: 32d"),
        ("0 0 * */13 *", "*/13", "give the instants as times"),
        ("0 0 * * */8", "*/8", "use every: 8d"),
        ("?/61 * * * *", "?/61", "use every: 61m"),
        ("H/90 * * * *", "H/90", "use every: 90m"),
        ("0 0 H/29 * *", "H/29", "use every: 29d"),
        ("5-10/30 * * * *", "5-10/30", "write 5, or a shorter step"),
        ("1,5-10/30 * * * *", "5-10/30", "write 5, or a shorter step"),
        ("0 22-2/6 * * *", "22-2/6", "write 22, or a shorter step"),
        ("0 9-9/2 * * *", "9-9/2", "write 9, or a shorter step"),
        ("50/30 * * * *", "50/30", "write 50, or a shorter step"),
        ("0 0 * * 7/2", "7/2", "write 0, or a shorter step"),
        ("H(3-5)/30 * * * *", "H(3-5)/30", "a shorter step"),
        ("*/10000 * * * *", "*/10000", "use every: 10000m"),
        ("0 0 0 1 1 ? 2026-2030/10", "2026-2030/10", "write 2026"),
        ("CRON_TZ=Europe/Berlin */90 * * * *", "*/90", "use every: 90m"),
    ],
)
def test_a_step_longer_than_its_range_is_refused_with_a_suggestion(expression: str, bad: str, instead: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_cron(expression)
    assert expression[caught.value.start : caught.value.end] == bad
    assert instead in caught.value.detail


@pytest.mark.parametrize(
    ("expression", "count"),
    [("*/60 * * * *", 24), ("0 */24 * * *", 1), ("*/59 * * * *", 48), ("*/7 * * * *", 216), ("5-10/6 * * * *", 24)],
)
def test_steps_as_long_as_the_field_or_not_dividing_it_are_accepted(expression: str, count: int) -> None:
    day = [instant for instant in fire_times(parse_cron(expression), START - 1, 2000) if instant < START + 86_400]
    assert len(day) == count


def test_a_job_that_was_stored_with_a_long_step_keeps_its_meaning() -> None:
    hourly = parse_cron("*/90 * * * *", is_stored=True)
    assert fire_times(hourly, START, 3) == [START + 3600, START + 7200, START + 10_800]
    aws = parse_cron("0 12 * * ? *", is_stored=True)
    assert fire_times(aws, START, 2) == [START + 720, START + 4320]


@pytest.mark.parametrize("expression", ["0 12 * * ? *", "0 18 ? * 2-6 *", "15 10 ? * 1-5 *"])
def test_six_fields_in_the_order_of_aws_are_refused_with_both_spellings(expression: str) -> None:
    with pytest.raises(CronError, match=r"six fields begin with a second: write cron\(") as caught:
        parse_cron(expression)
    assert f"cron({expression})" in caught.value.detail
    parse_cron(f"cron({expression})")
    parse_cron(expression.replace("?", "*"))


@pytest.mark.parametrize(
    ("expression", "instead"),
    [
        ("@reboot", "let systemd run it when the machine starts"),
        ("@every", "give it a period, such as @every 5m"),
        ("@300", "every: 300s"),
        ("@dayly", "did you mean '@daily'"),
        ("daily", "write @daily"),
        ("every 5 minutes", "a period is given as every: 5m"),
        ("5m", "a period is given as every: 5m"),
        ("2026-01-01T00:00:00Z", "schedule_time"),
        ("at(2026-01-01T00:00:00)", "schedule_time"),
        ("Mon..Fri *-*-* 09:00", "OnCalendar of systemd"),
        ("*-*-* 09:00:00", "OnCalendar of systemd"),
        ("crontab(minute=0, hour=4)", "Celery's crontab()"),
        ("1, 2, 3 * * * *", "a list has commas between its items and no spaces"),
        ("0 1 ,2 * * *", "a list has commas between its items and no spaces"),
        ("* /5 * * * * * *", "a field has no spaces"),
        ("0 9 * * MON # every Monday morning", "an expression has no comment"),
        ('"0 9 * * *"', "leave out the quotes"),
        ("0 9 * * 1–5", "'–' is not a character of cron"),  # noqa: RUF001
        ("0 24 * * *", "midnight is 0"),
        ("60 * * * *", "begins with 0"),
        ("-5 * * * *", "there are no negative numbers"),
        ("30-10 * * * *", "write 10-30, or 30-59,0-10 to go round the end"),
        ("0 0 0 1 1 ? 2030-2020", "write 2020-2030"),
        ("*/-5 * * * *", "a step is a number after one /"),
        ("*/5/2 * * * *", "a step is a number after one /"),
        ("*/0 * * * *", "a step must be 1 or more"),
        ("0~30 4 * * *", "H(0-30)"),
        ("R 4 * * *", "written H"),
        ("0 0 last * *", "the last day of the month is L"),
        ("0 0 2nd * *", "write 1 to 31"),
        ("0 0 MON * *", "days of the week stand in the last field"),
        ("0 0 5L * *", "days of the week stand in the last field"),
        ("0 0 1-5W * *", "W stands after one day"),
        ("0 0 * * L5", "the last one of a month is 5L"),
        ("0 0 * * LFRI", "the last one of a month is FRIL"),
        ("0 0 * * MON-FRIL", "MON-FRI#L"),
        ("0 0 * * MON#-1", "the last MON#L"),
        ("0 0 * * 15W", "W belongs to the day of the month"),
        ("0 0 * * MONDEY", "did you mean 'MONDAY'"),
        ("0 0 1 SEPTEMBR *", "did you mean 'SEPTEMBER'"),
        ("0 0 +13 * FRI", "+ stands once, before the whole day of the week"),
        ("0 0 1C * *", "name it as calendar"),
        ("0 12 * * ? 2026", "a year is the seventh field, and a second the first: write 0 0 12 * * ? 2026"),
        ("0 0 29 2 * 2027-2030", "write 0 0 0 29 2 * 2027-2030, or cron(...)"),
        ("@once", "without a schedule, or with schedule_time"),
        ("@Quarterly", "write 0 0 1 */3 *"),
        ("quarterly", "write 0 0 1 */3 *"),
        ("@minutely", "write @every_minute"),
        ("@weekdays", "write 0 0 * * MON-FRI"),
        ("@15min", "@every 15m"),
        ("@15 minutes", "@every 15m"),
        ("@startup", "let systemd run it"),
        ("PT5M", "every: 5m"),
        ("R/2027-01-01T00:00:00Z/P1D", "every and start_at"),
        ("RRULE:FREQ=WEEKLY;BYDAY=MO", "'0 9 * * MON', or its instants are given as times"),
        ("OnCalendar=daily", "OnCalendar of systemd"),
        ("cron(0 12 * * *)", "the 6 fields of AWS"),
        ("cron(0 12 ? * 0 *)", "1 is Sunday and 7 is Saturday"),
        ("rate(0 minutes)", "rate(5 minutes)"),
        ("rate(five minutes)", "rate(5 minutes)"),
        ("CRON_TZ=Mars/Olympus 0 0 * * *", "no IANA time zone 'Mars/Olympus'"),
        ("CRON_TZ= 0 0 * * *", "no IANA time zone ''"),
        ("CRON_TZ=Europe/Berlin", "found 0"),
        ("@every 5 minutes", "write 5m"),
        ("@every 1 hour and 30 mins", "write 1h30m"),
        ("@every P1DT12H", "write 1d12h"),
        ("@every 2 months", "write it like 90s, 5m"),
        ("@every 1.5h", "write it like 90s, 5m"),
        ("@every 100ms", "write it like 90s, 5m"),
        ("@every -5m", "write it like 90s, 5m"),
        ("@every 0s", "between 1 second"),
    ],
)
def test_a_refusal_suggests_what_to_write(expression: str, instead: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_cron(expression)
    assert instead in caught.value.detail


def test_an_error_in_the_parentheses_of_aws_points_at_all_of_them() -> None:
    with pytest.raises(CronError, match="hour: 25 is not between 0 and 23") as caught:
        parse_cron("cron(0 25 * * ? *)")
    assert (caught.value.start, caught.value.end) == (0, len("cron(0 25 * * ? *)"))


# Zones and periods around an expression


def test_a_zone_before_the_expression_keeps_error_positions() -> None:
    text = "CRON_TZ=Europe/Berlin 0 25 * * *"
    with pytest.raises(CronError) as caught:
        parse_cron(text)
    assert text[caught.value.start : caught.value.end] == "25"
    with pytest.raises(CronError) as caught:
        parse_cron("  TZ=Europe/Berlim 0 9 * * *")
    assert "  TZ=Europe/Berlim 0 9 * * *"[caught.value.start : caught.value.end] == "Europe/Berlim"
    assert "did you mean 'Europe/Berlin'" in caught.value.detail


def test_conflicting_zones_are_refused() -> None:
    berlin, utc = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")
    same = parse_cron("CRON_TZ=Europe/Berlin 0 9 * * *", berlin)
    assert same.next_after(START) == parse_cron("0 9 * * *", berlin).next_after(START) == START + 8 * 3600
    with pytest.raises(
        CronError, match="the expression says Europe/Berlin and timezone says UTC: leave one of them out"
    ):
        parse_cron("CRON_TZ=Europe/Berlin 0 9 * * *", utc)


@pytest.mark.parametrize(
    ("text", "every", "zone"),
    [
        ("@every 5m", "5m", None),
        (" @EVERY  1h30m ", "1h30m", None),
        ("CRON_TZ=Europe/Berlin @every 1d", "1d", "Europe/Berlin"),
        ("TZ=':UTC' @every 90s", "90s", "UTC"),
        ("rate(5 minutes)", "5m", None),
        ("rate(1 hour)", "1h", None),
        ("Rate( 7 days )", "7d", None),
    ],
)
def test_a_period_equals_every(text: str, every: str, zone: str | None) -> None:
    found = read_notation(text)
    assert (found.every, found.zone) == (every, zone)
    with pytest.raises(CronError, match=f"this is a period and no cron expression: use every: {every}"):
        parse_cron(text)


# Years


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ("0 0 0 1 1 ? 2020", []),
        ("0 0 0 1 1 ? 2020,2027", ["2027-01-01 00:00"]),
        ("0 0 0 1 1 ? 2199", ["2199-01-01 00:00"]),
        ("0 0 0 1 1 * 2150-2199/7", ["2150-01-01 00:00", "2157-01-01 00:00"]),
        ("0 0 0 29 2 ? 2027-2029", ["2028-02-29 00:00"]),
    ],
)
def test_there_is_no_tick_after_the_last_year(expression: str, times: list[str]) -> None:
    assert times_of(expression, max(1, len(times))) == times
    assert parse_cron(expression).next_after(instant_of(2199, 12, 31)) is None


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 0 29 2 ? 2026,2027",
        "0 0 0 30 2 ? *",
        "0 0 0 29 2 ? 2100",
        "0 0 0 ? 2 MON#5 2026-2043",
        "0 0 0 31 4 ? 1970/1",
    ],
)
def test_days_that_no_given_year_has_are_refused(expression: str) -> None:
    with pytest.raises(CronError, match="so this never fires") as caught:
        parse_cron(expression)
    assert caught.value.field == "day-of-month"


# Bounds


@pytest.mark.parametrize(
    "text",
    [
        *[
            "1," * MEGABYTE + "1 * * * *",
            "*" * MEGABYTE,
            " " * MEGABYTE,
            "* " * MEGABYTE,
            "9" * MEGABYTE + " * * * *",
            "@" * MEGABYTE,
        ],
        *[
            "CRON_TZ=" + "x" * MEGABYTE,
            "TZ=" * MEGABYTE,
            "@every " + " 1" * MEGABYTE,
            "cron(" + "(" * MEGABYTE,
            "cron(" * MEGABYTE,
        ],
        *[
            "H(" * MEGABYTE,
            "1-" * MEGABYTE,
            "*/" * MEGABYTE,
            "MON#" * MEGABYTE,
            "\u2003" * MEGABYTE,
            "@every " + " " * MEGABYTE + "x",
        ],
    ],
    ids=range(17),
)
def test_a_text_of_megabytes_is_refused_by_its_length(text: str) -> None:
    def refuse() -> None:
        with pytest.raises(CronError, match="and 500 is the most") as caught:
            parse_cron(text)
        assert len(caught.value.detail) < 300

    assert steps_of(refuse) < 4_000


@pytest.mark.parametrize(
    "text",
    [
        *[
            "1," * 240 + "1 * * * *",
            "*" * 500,
            " " * 500,
            "* " * 250,
            "9" * 490 + " * * * *",
            "*/" + "9" * 480 + " * * * *",
            "@" * 500,
        ],
        *[
            "CRON_TZ=" + "x" * 480,
            "TZ=" * 160,
            "@every " + " 1" * 240,
            "cron(" + "(" * 490,
            "cron(" + "()" * 240,
            "cron(" + "()" * 240 + ")",
        ],
        *[
            "H(" * 250,
            "1-" * 250,
            "*/" * 250,
            "0 0 * * " + "MON#" * 120,
            "0 0 * * " + "A" * 490,
            "a" * 490 + ".",
            "every " + "9" * 490,
        ],
        "0 0 0 29 2 +MON#5 " + ",".join(["2199"] * 90),
    ],
    ids=range(21),
)
def test_the_longest_accepted_text_is_parsed_quickly(text: str) -> None:
    def read() -> None:
        try:
            parse_cron(text)
        except CronError as error:
            assert 0 <= error.start <= error.end <= len(text) + 1  # noqa: PT017

    assert steps_of(read) < 30_000
