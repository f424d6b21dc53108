"""`foliot jobs`: lists, shows, cancels and deletes jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from foliot.sdk import client as sdk_client
from tests.support.cluster import Cluster
from tests.support.terminal import Shell

pytestmark = pytest.mark.process

Recurring = Callable[..., str]


def test_jobs_lists_recurring_jobs_in_columns(shell: Shell, recurring: Recurring) -> None:
    recurring("--every", "3h", name="list: plain")
    recurring("--cron", "0 0 1 1 *", "--timezone", "Europe/Berlin", name="list: 日本")
    shell.done("pause", "list: plain")
    header, *lines = shell.done("jobs").splitlines()
    assert header.split() == ["NAME", "STATUS", "SCHEDULE", "TASK", "QUEUE", "NEXT", "WHEN"]
    plain, wide = (next(line for line in lines if line.startswith(f"list: {name}")) for name in ("plain", "日本"))
    assert plain.split()[2:6] == ["paused", "every", "3h", "simulate"]
    assert "0 0 1 1 * (Europe/Berlin)" in wide
    # Each of the two letters is two columns wide.
    assert wide.index("active") + 2 == plain.index("paused") == header.index("STATUS")


def test_jobs_as_json_are_the_items_of_every_page(
    shell: Shell, recurring: Recurring, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [recurring(name=f"page {number}") for number in range(5)]
    monkeypatch.setattr(sdk_client, "PAGE", 2)
    listed = shell.json("jobs")
    assert listed["next"] is None
    found = [job["name"] for job in listed["items"]]
    assert [name for name in found if name.startswith("page ")] == names
    assert len(found) == len(set(found))
    shown = json.loads(shell.done("jobs", "show", "page 3", "--json"))
    assert shown in listed["items"]


def test_an_empty_list_is_reported_to_people_only(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_client.Client, "_pages", lambda *_: iter([sdk_client.Page([])]))
    ended = shell.foliot("jobs")
    assert (ended.code, ended.out, ended.err) == (0, "", "No recurring jobs.\n")
    assert shell.done("jobs", "--json") == '{"items":[],"next":null}\n'


def test_show_describes_a_recurring_job(shell: Shell, recurring: Recurring) -> None:
    payload = '{"execution_time_ms": 5}'
    name = recurring(
        "--every", "2h", "--overlap", "buffer_one", "--priority", "3", "--max-runs", "4", "--payload", payload
    )
    shell.done("pause", name, "--reason", "bell\a and \x1b[31mred", "--until", "2199-01-01T00:00:00Z")
    shown = dict(line.split("  ", 1) for line in shell.done("jobs", "show", name).splitlines())
    facts = {key: value.strip() for key, value in shown.items()}
    assert (facts["name"], facts["status"], facts["schedule"], facts["priority"]) == (name, "paused", "every 2h", "3")
    assert facts["pause reason"] == "bell\\x07 and \\x1b[31mred"
    assert facts["paused until"].startswith("2199-01-01T00:00:00Z (in ")
    assert "overlap buffer_one" in facts["policies"]
    assert (facts["runs left"], facts["payload"]) == ("4", '{"execution_time_ms":5}')


def test_the_json_option_may_precede_the_command(shell: Shell, recurring: Recurring) -> None:
    name = recurring()
    before, after = shell.done("jobs", "--json", "show", name), shell.done("jobs", "show", name, "--json")
    assert json.loads(before) == json.loads(after)
    assert "{" not in shell.done("jobs", "next", name)


def test_letters_that_a_terminal_lacks_are_escaped(cluster: Cluster, recurring: Recurring) -> None:
    name = recurring(name="grün 日")
    environment = os.environ | {"FOLIOT_URL": cluster.url, "PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-m", "foliot", "jobs", "show", name]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="latin-1", timeout=60, check=True)
    assert "name      grün \\u65e5\n" in done.stdout


def test_next_shows_the_fire_times_in_the_zone_of_the_job(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--cron", "0 9 * * *", "--timezone", "Asia/Kathmandu")
    header, *lines = shell.done("jobs", "next", name, "--count", "3").splitlines()
    assert header.split() == ["NEXT", "WHEN"]
    assert [line.split()[0][10:] for line in lines] == ["T09:00:00+05:45"] * 3
    assert lines[2].endswith(" in 2 d") or lines[2].endswith(" in 3 d")
    items = shell.json("jobs", "next", name, "--count", "3")["items"]
    assert [(line.split()[0], None) for line in lines] == [(item["at"], item["dst"]) for item in items]


def test_next_says_where_the_clocks_change(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--cron", "30 2 29 3 *", "--timezone", "Europe/Berlin", "--start-at", "2026-01-01T00:00:00Z")
    years = [
        line
        for line in shell.done("jobs", "next", name, "--count", "12").splitlines()
        if "the clock skips this time" in line
    ]
    # The last Sunday in March may be the 29th within the next twelve years.
    assert years
    assert all(line.split()[0].endswith("T03:00:00+02:00") for line in years)


def test_a_waiting_job_is_cancelled_and_an_ended_one_is_not(shell: Shell) -> None:
    job = shell.done("submit", "--command", "true", "--delay", "1h").strip()
    ended = shell.foliot("cancel", job, "--reason", "not needed")
    assert (ended.code, ended.out, ended.err) == (0, "", f"{job} is cancelled\n")
    assert shell.json("cancel", job, "--json")["error"]["message"] == "not needed"
    assert "Cancelled: not needed" in shell.done("jobs", "show", job)
    assert "there is no run 'nothing'" in shell.refusal("cancel", "nothing", code=1)


def test_several_expressions_and_a_calendar_make_one_schedule(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--cron", "0 9 * * *", "--cron", "0 21 * * SUN")
    assert "0 9 * * * | 0 21 * * SUN" in shell.done("jobs", "show", name)
    complaint = shell.refusal("submit", "--command", "true", "--cron", "@daily", "--calendar", "nowhere", code=2)
    assert complaint.startswith("foliot: calendar: there is no calendar named 'nowhere'")


def test_a_count_or_limit_out_of_range_is_refused_by_the_server(shell: Shell, recurring: Recurring) -> None:
    name = recurring()
    assert shell.refusal("jobs", "next", name, "--count", "0", code=2) == "foliot: count: must be between 1 and 1000\n"
    assert shell.refusal("ticks", name, "--limit", "201", code=2) == "foliot: limit: must be between 1 and 200\n"
    assert shell.refusal("ticks", name, "--limit", "9" * 40, code=2).startswith("foliot: limit: ")
    assert "'--limit': 'x' is not a valid integer" in shell.refusal("ticks", name, "--limit", "x", code=2)


def test_a_deleted_job_is_gone(shell: Shell, recurring: Recurring) -> None:
    name = recurring()
    ended = shell.foliot("jobs", "delete", name)
    assert (ended.code, ended.out, ended.err) == (0, "", f"{name} was deleted\n")
    assert shell.refusal("jobs", "show", name, code=1) == f"foliot: there is no job '{name}'\n"
