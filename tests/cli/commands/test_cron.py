"""`foliot cron`: the fire times and the description of an expression, and errors that point at the wrong part."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner

from foliot.cli.main import cli
from foliot.errors import Invalid

NOON = "2026-03-01T12:00:00Z"


def cron(*arguments: str) -> str:
    """The printed lines."""
    result = CliRunner().invoke(cli, ["cron", *arguments])
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def times(expression: str, *arguments: str) -> list[str]:
    return cron("next", expression, *arguments).splitlines()


def refusal(*arguments: str) -> str:
    """The error, which `main` turns into an exit code, when nothing is printed."""
    result = CliRunner().invoke(cli, ["cron", *arguments])
    assert isinstance(result.exception, Invalid), result.output
    assert result.stdout == ""
    return result.exception.detail


def foliot(directory: Path, *arguments: str | bytes) -> tuple[int, str, str]:
    """Runs a real process, and returns its exit code and output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
    done = subprocess.run(
        [sys.executable, "-m", "foliot", "cron", *arguments],
        cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


# next


def test_next_prints_one_instant_with_offset_on_each_line() -> None:
    printed = cron("next", "0 9 * * MON-FRI", "--after", NOON, "--count", "3")
    assert printed == "2026-03-02T09:00:00+00:00\n2026-03-03T09:00:00+00:00\n2026-03-04T09:00:00+00:00\n"


def test_next_prints_five_times_from_now_by_default() -> None:
    before = datetime.now(UTC)
    found = [datetime.fromisoformat(line) for line in times("*/10 * * * * *")]
    assert len(found) == 5
    assert before < found[0] <= datetime.now(UTC) + timedelta(seconds=10)
    assert {later - earlier for earlier, later in itertools.pairwise(found)} == {timedelta(seconds=10)}


def test_a_zone_shifts_the_local_time_and_shows_its_offset() -> None:
    assert times("0 9 * * *", "--after", NOON, "--count", "1", "--tz", "Asia/Kathmandu") == [
        "2026-03-02T09:00:00+05:45"
    ]
    over_the_change = times("0 12 * * *", "--after", "2026-03-27T13:00:00Z", "--count", "3", "--tz", "Europe/Zurich")
    assert over_the_change == ["2026-03-28T12:00:00+01:00", "2026-03-29T12:00:00+02:00", "2026-03-30T12:00:00+02:00"]


@pytest.mark.parametrize(
    ("after", "first"),
    [
        ("2026-03-01T09:00:00+09:00", "2026-03-01T09:30:00+09:00"),
        ("2026-03-01T00:00:00Z", "2026-03-01T09:30:00+09:00"),
        ("2026-03-01T09:00:00", "2026-03-01T09:30:00+09:00"),
        ("2026-03-01 09:29:59.999", "2026-03-01T09:30:00+09:00"),
        ("2026-03-01T09:30:00", "2026-03-02T09:30:00+09:00"),
        ("2026-03-01T09:30:00.5", "2026-03-02T09:30:00+09:00"),
        ("2026-03-01", "2026-03-01T09:30:00+09:00"),
        ("2026-02-28T19:30:00-05:00", "2026-03-02T09:30:00+09:00"),
    ],
)
def test_after_without_an_offset_is_a_time_of_the_zone(after: str, first: str) -> None:
    assert times("30 9 * * *", "--tz", "Asia/Tokyo", "--count", "1", "--after", after) == [first]


def test_count_limits_the_number_of_times() -> None:
    for count in (1, 7, 10_000):
        found = times("* * * * *", "--after", NOON, "--count", str(count))
        assert (len(found), len(set(found))) == (count, count)


def test_nothing_is_printed_when_no_times_are_left() -> None:
    for after in ("2200-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00"):
        result = CliRunner().invoke(cli, ["cron", "next", "@daily", "--after", after])
        assert (result.exit_code, result.stdout, result.stderr) == (
            0,
            "",
            "the expression never fires after that time\n",
        )
        assert json.loads(cron("next", "@daily", "--after", after, "--json"))["times"] == []
    assert times("@yearly", "--after", "2198-06-01T00:00:00Z") == [
        "2199-01-01T00:00:00+00:00",
        "2200-01-01T00:00:00+00:00",
    ]


def test_the_earliest_possible_instant_is_accepted() -> None:
    for after in ("0001-01-01", "0001-01-01T00:00:00+14:00"):
        assert times("@daily", "--after", after, "--tz", "Asia/Tokyo", "--count", "1")[0].startswith("1900-01-0")


@pytest.mark.parametrize(
    ("after", "options", "expected"),
    [
        ("2026-03-28T12:00", [], ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
        ("2026-03-28T12:00", ["--dst-gap", "shift"], ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
        ("2026-03-28T12:00", ["--dst-gap", "skip"], ["2026-03-30T02:30:00+02:00", "2026-03-31T02:30:00+02:00"]),
        ("2026-10-24T12:00", [], ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        ("2026-10-24T12:00", ["--dst-fold", "first"], ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        ("2026-10-24T12:00", ["--dst-fold", "last"], ["2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"]),
        ("2026-10-24T12:00", ["--dst-fold", "both"], ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"]),
    ],
)
def test_dst_policies_apply(after: str, options: list[str], expected: list[str]) -> None:
    assert times("30 2 * * *", "--tz", "Europe/Zurich", "--after", after, "--count", "2", *options) == expected


def test_a_seed_determines_h() -> None:
    def first(seed: str) -> str:
        return times("H H * * *", "--after", NOON, "--count", "1", "--seed", seed)[0]

    assert first("nightly-report") == first("nightly-report") == "2026-03-01T23:04:00+00:00"
    assert len({first(f"job {number}") for number in range(10)}) > 5
    assert cron("explain", "H H * * *", "--seed", "nightly-report") == "at 23:04\n"
    assert first("") == times("H H * * *", "--after", NOON, "--count", "1")[0]


def test_next_as_json_is_for_programs() -> None:
    printed = cron("next", "0 9 * * *", "--after", NOON, "--count", "2", "--tz", "Europe/Zurich", "--json")
    assert printed.count("\n") == 1
    assert json.loads(printed) == {
        "expression": "0 9 * * *",
        "timezone": "Europe/Zurich",
        "times": ["2026-03-02T09:00:00+01:00", "2026-03-03T09:00:00+01:00"],
    }


# explain


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 9 * * MON-FRI", "at 09:00, on Monday to Friday"),
        ("*/15 * * * *", "every 15 minutes"),
        ("@monthly", "at 00:00, on day 1 of the month"),
        ("30 0 9 L * *", "at 09:00:30"),
    ],
)
def test_explain_describes_the_expression(expression: str, words: str) -> None:
    printed = cron("explain", expression)
    assert printed.startswith(words)
    assert printed.count("\n") == 1
    assert json.loads(cron("explain", expression, "--json")) == {
        "expression": expression,
        "meaning": printed.rstrip("\n"),
        "notes": [],
    }


def test_explain_prints_surprises_separately() -> None:
    result = CliRunner().invoke(cli, ["cron", "explain", "*/7 * * * *"])
    assert (result.exit_code, result.stdout) == (0, "every 7 minutes\n")
    assert result.stderr.startswith("note: minute: */7 starts again with each hour")
    (note,) = json.loads(cron("explain", "*/7 * * * *", "--json"))["notes"]
    assert result.stderr == f"note: {note}\n"


def test_a_zone_in_the_expression_applies_to_the_times() -> None:
    berlin = "CRON_TZ=Europe/Berlin 0 9 * * *"
    assert times(berlin, "--after", NOON, "--count", "1") == ["2026-03-02T09:00:00+01:00"]
    assert times(berlin, "--after", NOON, "--count", "1", "--tz", "Europe/Berlin") == ["2026-03-02T09:00:00+01:00"]
    assert json.loads(cron("next", berlin, "--after", NOON, "--json"))["timezone"] == "Europe/Berlin"
    assert cron("explain", berlin) == "at 09:00, in the time zone Europe/Berlin\n"
    for command in ("next", "explain"):
        assert (
            refusal(command, berlin, "--tz", "UTC")
            == "--tz: the expression names Europe/Berlin and --tz names UTC; leave one of them out"
        )
        assert refusal(command, "CRON_TZ=Europe/Berlim 0 9 * * *").endswith(
            "\n  CRON_TZ=Europe/Berlim 0 9 * * *\n          ^^^^^^^^^^^^^"
        )


def test_a_period_counts_from_the_after_option() -> None:
    assert times("@every 1h30m", "--after", NOON, "--count", "2") == [
        "2026-03-01T13:30:00+00:00",
        "2026-03-01T15:00:00+00:00",
    ]
    assert times("rate(1 day)", "--after", NOON, "--count", "1", "--tz", "Asia/Tokyo") == ["2026-03-02T21:00:00+09:00"]
    assert cron("explain", "@every 90s").startswith("every 1 minute and 30 seconds, counted from")
    assert "write it like 90s, 5m" in refusal("next", "@every soon")


def test_past_years_end_without_an_error() -> None:
    result = CliRunner().invoke(cli, ["cron", "next", "0 0 0 1 1 ? 2020"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "the expression never fires after that time\n")
    assert times("0 0 0 1 1 ? 2020,2030", "--after", NOON) == ["2030-01-01T00:00:00+00:00"]


def test_an_expression_of_a_hundred_kilobytes_is_refused_in_one_line() -> None:
    assert refusal("next", "1," * 50_000 + "1 * * * *").startswith(
        "the expression has 100009 characters, and 500 is the most"
    )
    assert len(refusal("explain", "*" * 100_000)) < 200


# Refusals


@pytest.mark.parametrize(
    ("expression", "field", "bad"),
    [
        ("60 * * * *", "minute", "60"),
        ("0 24 * * *", "hour", "24"),
        ("* * 0 * *", "day-of-month", "0"),
        ("* * * 13 *", "month", "13"),
        ("* * * * 8", "day-of-week", "8"),
        ("61 * * * * *", "second", "61"),
        ("0 0 0 * * 1,2,xyz,4", "day-of-week", "xyz"),
        ("  7   5,25  * * *", "hour", "25"),
        ("30-10 * * * *", "minute", "30-10"),
        ("*/0 * * * *", "minute", "*/0"),
        ("0\t9\t*\t13\t*", "month", "13"),
        ("0\n9\n32 * *", "day-of-month", "32"),
        ("0 0 30 2 *", "day-of-month", "30"),
        ("0 0 30,31 feb MON#0", "day-of-week", "MON#0"),
        ("٣ * * * *", "minute", "٣"),
    ],
)
def test_the_wrong_part_of_a_field_is_underlined(expression: str, field: str, bad: str) -> None:
    for command in ("next", "explain"):
        said, shown, carets = refusal(command, expression).split("\n")
        assert said.startswith(f"{field}: ")
        assert shown == "  " + expression.replace("\t", " ").replace("\n", " ")
        start = carets.index("^")
        assert carets == " " * start + "^" * len(bad)
        assert shown[start : start + len(bad)] == bad


@pytest.mark.parametrize("expression", ["* * * *", "* * * * * * * *", "daily", "@never", "@reboot"])
def test_an_expression_that_is_wrong_as_a_whole_is_underlined_completely(expression: str) -> None:
    _, shown, carets = refusal("next", expression).split("\n")
    assert (shown, carets) == (f"  {expression}", f"  {'^' * len(expression)}")


def test_an_empty_expression_has_no_underline() -> None:
    said = refusal("next", "")
    assert said.startswith("expected 5 fields")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Europe/Zuric", ", did you mean 'Europe/Zurich'?"),
        ("europe/zurich", ", did you mean 'Europe/Zurich'?"),
        ("Q", ""),
        ("", ""),
        ("../UTC", ", did you mean 'UTC'?"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_known_one(zone: str, hint: str) -> None:
    for command in ("next", "explain"):
        assert refusal(command, "@daily", "--tz", zone) == f"timezone: there is no IANA time zone {zone!r}{hint}"


@pytest.mark.parametrize(
    "after", ["tomorrow", "", "12:00", "2026-02-30", "2026-03-01T25:00:00Z", "2026-03-01T00:00:00+25:00", "1767225600"]
)
def test_an_invalid_after_is_refused(after: str) -> None:
    assert refusal("next", "@daily", "--after", after).startswith(f"--after {after!r}: not an ISO 8601 time")


@pytest.mark.parametrize(
    "arguments",
    [
        *(["next", "@daily", "--count", count] for count in ("0", "-1", "10001", "x", "1.5")),
        *(
            ["next", "@daily", "--dst-gap", "jump"],
            ["explain", "@daily", "--dst-fold", "twice"],
            ["explain", "@daily", "--after", NOON],
        ),
        *(["next"], ["next", "0", "9", "*", "*", "*"], ["explain"], ["previous", "@daily"]),
    ],
)
def test_an_invalid_command_line_exits_with_2(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, ["cron", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr


# From outside


def test_a_process_prints_its_result_and_exits_with_0(tmp_path: Path) -> None:
    code, out, err = foliot(tmp_path, "next", "0 9 * * *", "--tz", "Europe/Zurich", "--count", "2")
    assert (code, err) == (0, "")
    found = [datetime.fromisoformat(line) for line in out.splitlines()]
    assert len(found) == 2
    assert all(time.astimezone(ZoneInfo("Europe/Zurich")).hour == 9 for time in found)
    assert foliot(tmp_path, "explain", "0 9 * * *") == (0, "at 09:00\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["next", "0 9,24 * * *"],
            "foliot: hour: 24 is not between 0 and 23; midnight is 0\n  0 9,24 * * *\n      ^^\n",
        ),
        (
            ["explain", "0 9 * * MO"],
            "foliot: day-of-week: can't read 'MO'; write 0 to 7, or SUN to SAT, did you mean 'MON'?\n  0 9 * * MO\n   "
            "       ^^\n",
        ),
        (
            ["next", "@daily", "--tz", "Europe/Zuric"],
            "foliot: timezone: there is no IANA time zone 'Europe/Zuric', did you mean 'Europe/Zurich'?\n",
        ),
        (
            ["next", "@daily", "--after", "x"],
            "foliot: --after 'x': not an ISO 8601 time, such as 2026-03-28T12:00:00+01:00\n",
        ),
    ],
)
def test_a_refusal_exits_with_2_and_an_error(tmp_path: Path, arguments: list[str], said: str) -> None:
    assert foliot(tmp_path, *arguments) == (2, "", said)


def test_arguments_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    for arguments in (
        [b"next", b"\xff * * * *"],
        [b"next", b"@daily", b"--tz", b"\xff"],
        [b"next", b"@daily", b"--after", b"\xff"],
    ):
        code, out, err = foliot(tmp_path, *arguments)
        assert (code, out) == (2, "")
        assert err.startswith("foliot: ")
        assert "Traceback" not in err
