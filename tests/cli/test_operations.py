"""The commands that look at recurring jobs and work on them: `jobs`, `ticks`, `pause`, `resume`, `trigger`,
`backfill`."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from uuid import UUID

import click
import pytest

from foliot.cli.commands.ticks import strip, tick_table
from foliot.model.schedule import Reason
from foliot.model.states import RunState
from foliot.sdk import client as sdk_client
from tests.support.cluster import Cluster
from tests.support.terminal import Ended, Shell
from tests.support.waiting import until

pytestmark = pytest.mark.process

Recurring = Callable[..., str]
# Names that a path, a pattern or a terminal would make something else of.
ODD_NAMES = [
    "a b",
    "100%",
    "%41",
    "über 日本",
    "a?b=c&d#e",
    "-dash",
    "a+b;c",
    "...",
    "\U0001f468‍\U0001f469‍\U0001f467",
    "'\"`$(x)",
    "show",
]
RANGE = ("--from", "2026-03-01T00:00:00Z", "--to", "2026-03-01T05:59:59+00:00")
ON_ONE_JOB = [
    ["jobs", "show"],
    ["jobs", "next"],
    ["jobs", "delete"],
    ["ticks"],
    ["pause"],
    ["resume"],
    ["trigger"],
    ["backfill", *RANGE],
]


def parsed(shell: Shell, *arguments: str) -> Any:
    return json.loads(shell.done(*arguments, "--json"))


def on_a_terminal(cluster: Cluster, *arguments: str, typed: str = "", **environment: str) -> Ended:
    """A real process whose input and output are a terminal; what it shows is in `out`, however it was written."""
    ours, its = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "foliot", *arguments],
        env=kept | {"FOLIOT_URL": cluster.url, "TERM": "xterm-256color"} | environment, stdin=its, stdout=its, stderr=its,
    )  # fmt: skip
    os.close(its)
    os.write(ours, typed.encode())
    shown = b""
    # Linux answers with an error, not with an end of file, when the last writer has gone.
    try:
        while chunk := os.read(ours, 65_536):
            shown += chunk
    except OSError:
        pass
    finally:
        os.close(ours)
    return Ended(process.wait(timeout=60), shown.decode(), "")


# jobs


def test_jobs_lists_recurring_jobs_in_columns(shell: Shell, recurring: Recurring) -> None:
    recurring("--every", "3h", name="list: plain")
    recurring("--cron", "0 0 1 1 *", "--timezone", "Europe/Berlin", name="list: 日本")
    shell.done("pause", "list: plain")
    header, *lines = shell.done("jobs").splitlines()
    assert header.split() == ["NAME", "STATUS", "SCHEDULE", "TASK", "QUEUE", "NEXT", "WHEN"]
    plain, wide = (next(line for line in lines if line.startswith(f"list: {name}")) for name in ("plain", "日本"))
    assert plain.split()[2:6] == ["paused", "every", "3h", "simulate"]
    assert "0 0 1 1 * (Europe/Berlin)" in wide
    # Each of the two letters takes two columns of a terminal.
    assert wide.index("active") + 2 == plain.index("paused") == header.index("STATUS")


def test_jobs_as_json_are_those_of_the_api_from_every_page(
    shell: Shell, recurring: Recurring, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [recurring(name=f"page {number}") for number in range(5)]
    monkeypatch.setattr(sdk_client, "PAGE", 2)
    listed = parsed(shell, "jobs")
    assert listed["next"] is None
    found = [job["name"] for job in listed["items"]]
    assert [name for name in found if name.startswith("page ")] == names
    assert len(found) == len(set(found))
    shown = json.loads(shell.done("jobs", "show", "page 3", "--json"))
    assert shown in listed["items"]


def test_no_jobs_at_all_is_said_to_people_only(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_json_option_may_stand_before_the_command_too(shell: Shell, recurring: Recurring) -> None:
    name = recurring()
    before, after = shell.done("jobs", "--json", "show", name), shell.done("jobs", "show", name, "--json")
    assert json.loads(before) == json.loads(after)
    assert "{" not in shell.done("jobs", "next", name)


def test_a_terminal_without_the_letters_gets_their_numbers(cluster: Cluster, recurring: Recurring) -> None:
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
    items = parsed(shell, "jobs", "next", name, "--count", "3")["items"]
    assert [(line.split()[0], None) for line in lines] == [(item["at"], item["dst"]) for item in items]


def test_next_says_where_the_clocks_change(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--cron", "30 2 29 3 *", "--timezone", "Europe/Berlin", "--start-at", "2026-01-01T00:00:00Z")
    years = [
        line
        for line in shell.done("jobs", "next", name, "--count", "12").splitlines()
        if "the clock skips this time" in line
    ]
    # The last Sunday in March is the 29th in some of any twelve years.
    assert years
    assert all(line.split()[0].endswith("T03:00:00+02:00") for line in years)


def test_a_waiting_job_is_cancelled_and_an_ended_one_stays(shell: Shell) -> None:
    job = shell.done("submit", "--command", "true", "--delay", "1h").strip()
    ended = shell.foliot("cancel", job, "--reason", "not needed")
    assert (ended.code, ended.out, ended.err) == (0, "", f"{job} is cancelled\n")
    assert parsed(shell, "cancel", job, "--json")["error"]["message"] == "not needed"
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


# any command on one job


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_found_by_every_command(shell: Shell, recurring: Recurring, name: str) -> None:
    recurring(name=name)
    assert json.loads(shell.done("jobs", "show", "--json", "--", name))["name"] == name
    for arguments in (
        ["pause"],
        ["resume"],
        ["ticks"],
        ["jobs", "next"],
        ["backfill", *RANGE],
        ["trigger"],
        ["jobs", "delete"],
    ):
        shell.done(*arguments, "--", name)


@pytest.mark.parametrize("arguments", ON_ONE_JOB, ids=" ".join)
def test_a_job_that_does_not_exist_is_said_to_be(shell: Shell, arguments: list[str]) -> None:
    said = shell.refusal(*arguments, "nobody's", code=1)
    assert said.startswith("foliot: there is no ")
    assert said.endswith('job "nobody\'s"\n')


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../jobs", "\udc80", "x\0y"])
@pytest.mark.parametrize("arguments", ON_ONE_JOB, ids=" ".join)
def test_a_name_that_no_job_can_have_is_not_found_either(shell: Shell, arguments: list[str], name: str) -> None:
    said = shell.refusal(*arguments, name, code=1)
    assert said.startswith("foliot: there is no ")
    assert said.endswith(f"job {name!r}\n")


def test_a_one_off_job_has_no_schedule_to_work_on(shell: Shell) -> None:
    job_id = shell.done("submit", "simulate").strip()
    for arguments in ON_ONE_JOB[1:]:
        assert shell.refusal(*arguments, job_id, code=1) == f"foliot: there is no recurring job '{job_id}'\n"


@pytest.mark.parametrize(
    "arguments", [["submit", "simulate"], ["jobs"], *([*command, "x"] for command in ON_ONE_JOB)], ids=" ".join
)
def test_a_server_that_is_not_there_is_one_clear_line(shell: Shell, closed_port: int, arguments: list[str]) -> None:
    url = f"http://127.0.0.1:{closed_port}"
    assert shell.refusal(*arguments, code=1, url=url) == (
        f"foliot: no Foliot answers at {url}; start one with `foliot up`, or set FOLIOT_URL to its address\n"
    )


def test_ctrl_c_while_the_server_is_silent_ends_it_quietly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = os.environ | {"FOLIOT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        asking = subprocess.Popen(
            [sys.executable, "-m", "foliot", "jobs"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(4) == b"GET "
            asking.send_signal(signal.SIGINT)
            assert (*asking.communicate(timeout=60), asking.returncode) == (b"", b"", 130)


def test_an_answer_of_something_else_is_one_clear_line(
    shell: Shell, recurring: Recurring, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = recurring()
    monkeypatch.setattr(sdk_client.Client, "_send", lambda *_, **__: b'{"items": [{}], "next": null}')
    on_one = [[*command, name] for command in ON_ONE_JOB if command[-1] not in ("next", "delete")]
    for arguments in (["submit", "simulate"], ["jobs"], *on_one):
        assert shell.refusal(*arguments, code=1).startswith("foliot: the server's response has no field '")


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://localhost",
        "http://",
        "http://host:port",
        "http://[::1",
        "x",
        "http://h/?q",
        "http://a b",
    ],
)
def test_an_address_that_is_none_is_a_wrong_configuration(shell: Shell, url: str) -> None:
    assert (
        shell.refusal("jobs", code=2, url=url) == f"foliot: FOLIOT_URL {url!r}: must look like http://127.0.0.1:8000\n"
    )


def test_a_token_that_is_none_is_refused_and_not_shown(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_TOKEN", "hunter\n2")
    said = shell.refusal("jobs", code=2)
    assert said.startswith("foliot: FOLIOT_TOKEN: ")
    assert "hunter" not in said


# pause, resume, trigger


def test_pause_and_resume(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--every", "2h")
    ended = shell.foliot("pause", name, "--reason", "maintenance")
    assert (ended.code, ended.out, ended.err) == (0, "", f"{name} is paused\n")
    assert parsed(shell, "jobs", "show", name)["paused_reason"] == "maintenance"
    ended = shell.foliot("resume", name)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith(f"{name} is active; its next tick is at ")
    assert parsed(shell, "jobs", "show", name)["status"] == "active"


def test_a_pause_until_an_instant(shell: Shell, recurring: Recurring) -> None:
    name, until_at = recurring(), datetime.now(UTC) + timedelta(days=2, seconds=30)
    assert shell.foliot("pause", name, "--until", until_at.isoformat()).err.endswith("(in 2 d)\n")
    job = parsed(shell, "pause", name, "--until", until_at.isoformat())
    assert (job["status"], datetime.fromisoformat(job["paused_until"])) == ("paused", until_at)
    assert parsed(shell, "resume", name)["paused_until"] is None


def test_a_pause_that_makes_no_sense_is_refused(shell: Shell, recurring: Recurring) -> None:
    name = recurring()
    assert "until: must be in the future" in shell.refusal("pause", name, "--until", "2020-01-01T00:00:00Z", code=2)
    assert "'--until': '12:00' is not an ISO 8601 time" in shell.refusal("pause", name, "--until", "12:00", code=2)
    assert "reason: " in shell.refusal("pause", name, "--reason", "x" * 1001, code=2)
    assert parsed(shell, "jobs", "show", name)["status"] == "active"


def test_a_triggered_run_can_be_looked_at(shell: Shell, recurring: Recurring) -> None:
    name = recurring()
    ended = shell.foliot("trigger", name)
    run_id = str(UUID(ended.out.strip()))
    assert ended.err == f"{name} was triggered; see: foliot jobs show {run_id}\n"
    assert parsed(shell, "jobs", "show", run_id)["name"] == name
    assert parsed(shell, "trigger", name)["job_id"] == parsed(shell, "jobs", "show", name)["id"]


# ticks


def test_a_job_without_ticks_says_so(shell: Shell, recurring: Recurring) -> None:
    name = recurring()
    ended = shell.foliot("ticks", name)
    assert (ended.code, ended.out, ended.err) == (0, "", "No ticks yet.\n")
    assert parsed(shell, "ticks", name) == {"items": []}


def test_a_missed_tick_says_from_when_to_when_no_scheduler_node_was_there() -> None:
    tick = {"until_at": None, "blocked_by": None, "run_id": None, "decided_at": "2026-03-01T12:00:50Z"}
    ticks = [
        tick | {"tick_at": "2026-03-01T12:00:50Z", "outcome": "running", "run_id": "r"},
        tick | {"tick_at": "2026-03-01T12:00:46Z", "outcome": "missed"},
    ]
    on_time, missed = tick_table({"items": ticks}, datetime(2026, 3, 1, 12, 1, tzinfo=UTC)).splitlines()[-2:]
    assert "later" not in on_time
    assert "4 s later" in missed
    assert "no scheduler was running from 2026-03-01T12:00:46Z to 2026-03-01T12:00:50Z" in missed


async def test_ticks_show_each_outcome_its_reason_and_its_run(
    shell: Shell, recurring: Recurring, cluster: Cluster
) -> None:
    name = recurring("--cron", "* * * * * *", "--payload", '{"execution_time_ms": 60000}')
    shell.done("trigger", name)

    async def overlapped() -> bool:
        return {tick["outcome"] for tick in parsed(shell, "ticks", name)["items"]} == {"running", "overlap"}

    await until(overlapped)
    # Nothing changes from here on: the runs take long, and no tick follows.
    shell.done("pause", name)
    ticks = parsed(shell, "ticks", name)["items"]
    assert parsed(shell, "ticks", name, "--limit", "1")["items"] == ticks[:1]
    strip_line, blank, header, *lines = shell.done("ticks", name).splitlines()
    marks, outcomes = {"running": "▶", "overlap": "o"}, [tick["outcome"] for tick in reversed(ticks)]
    # A tick that a busy scheduler fires late finds the triggered run open, and is older than it: either outcome may
    # come first.
    legend = " ".join(f"{marks[outcome]} {outcome}" for outcome in dict.fromkeys(outcomes))
    assert strip_line == f"{''.join(marks[outcome] for outcome in outcomes)}   {legend}"
    # A busy scheduler may decide a tick more than a second after it.
    shown = [title for title in header.split() if title != "DECIDED"]
    assert (blank, shown) == ("", ["TICK", "WHEN", "OUTCOME", "REASON", "BLOCKED", "BY", "RUN"])
    for tick, line in zip(ticks, lines, strict=True):
        assert line.startswith(f"{tick['tick_at']} ")
        assert line[header.index("OUTCOME") :].startswith(f"{tick['outcome']} ")
        if tick["outcome"] == "running":
            assert line[header.index("REASON") :].strip() == line[header.index("RUN") :] == tick["run_id"]
        else:
            assert line[header.index("REASON") :].startswith("the previous run had not ended  ")
            assert line[header.index("BLOCKED BY") :] == tick["blocked_by"]

    coloured = on_a_terminal(cluster, "ticks", name)
    assert coloured.code == 0
    colours = {"running": 36, "overlap": 33}
    assert "".join(f"\x1b[{colours[outcome]}m{marks[outcome]}\x1b[0m" for outcome in outcomes) in coloured.out
    plain = on_a_terminal(cluster, "ticks", name, NO_COLOR="1")
    assert "\x1b" not in plain.out
    assert plain.out.splitlines()[0] == strip_line


def test_the_strip_tells_outcomes_apart_without_colours() -> None:
    def mark(outcome: str, until_at: str | None = None) -> str:
        return click.unstyle(strip([{"outcome": outcome, "until_at": until_at}])).partition("   ")[0]

    outcomes = {str(outcome) for outcome in [*get_args(Reason), *RunState]}
    waiting = {"waiting", "held", "ready", "scheduled"}
    assert {mark(outcome) for outcome in waiting} == {"·"}
    assert len({mark(outcome) for outcome in outcomes - waiting} | {"·"}) == len(outcomes - waiting) + 1
    assert mark("missed", "2026-03-01T00:00:00Z") == f"{mark('missed')}…"


# backfill


def test_a_dry_run_shows_the_ticks_and_runs_none(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--cron", "0 * * * *")
    ended = shell.foliot("backfill", name, *RANGE, "--dry-run")
    header, *lines, total = ended.out.splitlines()
    assert (ended.code, ended.err, header.split(), len(lines)) == (0, "", ["TICK", "WHEN"], 6)
    assert lines[0].startswith("2026-03-01T00:00:00Z  ")
    assert total == "6 ticks to run; 0 already ran"
    document = parsed(shell, "backfill", name, *RANGE, "--dry-run")
    assert (len(document["ticks"]), document["is_dry_run"]) == (6, True)
    # It may have become the next hour meanwhile.
    assert [tick for tick in parsed(shell, "ticks", name)["items"] if tick["tick_at"] in document["ticks"]] == []


def test_a_script_is_not_asked(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--cron", "0 * * * *")
    ended = shell.foliot("backfill", name, *RANGE, "--overlap", "allow_all")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.endswith("6 ticks to run; 0 already ran\n6 ticks submitted\n")
    assert len(parsed(shell, "ticks", name)["items"]) == 6
    again = shell.foliot("backfill", name, *RANGE, "--json")
    assert json.loads(again.out) == {"ticks": [], "already_run": 6, "is_dry_run": False}
    assert again.err == "0 ticks to run; 6 already ran\n"


def test_many_ticks_are_shown_in_part(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--cron", "* * * * *")
    lines = shell.done("backfill", name, *RANGE, "--dry-run").splitlines()
    assert len(lines) == 1 + 20 + 2
    assert lines[-2:] == ["... and 340 more, up to 2026-03-01T05:59:00Z", "360 ticks to run; 0 already ran"]


@pytest.mark.parametrize(("typed", "code", "runs"), [("n\n", 1, 0), ("\n", 1, 0), ("\x04", 1, 0), ("y\n", 0, 6)])
def test_somebody_at_a_terminal_is_asked(
    shell: Shell, cluster: Cluster, recurring: Recurring, typed: str, code: int, runs: int
) -> None:
    name = recurring("--cron", "0 * * * *")
    ended = on_a_terminal(cluster, "backfill", name, *RANGE, typed=typed)
    assert f"Run 6 ticks of {name}? [y/N]: " in ended.out
    assert (ended.code, len(parsed(shell, "ticks", name)["items"])) == (code, runs)
    assert "Traceback" not in ended.out


def test_yes_is_not_asked(shell: Shell, cluster: Cluster, recurring: Recurring) -> None:
    name = recurring("--cron", "0 * * * *")
    ended = on_a_terminal(cluster, "backfill", name, *RANGE, "--yes")
    assert ended.code == 0
    assert "[y/N]" not in ended.out
    assert len(parsed(shell, "ticks", name)["items"]) == 6


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "Missing option '--from'"),
        (["--from", "2026-03-01T00:00:00Z"], "Missing option '--to'"),
        (["--from", "2026-03-01T00:00:00Z", "--to", "yesterday"], "'--to': 'yesterday' is not an ISO 8601 time"),
        (["--from", "2026-03-01", "--to", "2026-03-02T00:00:00Z"], "'--from': '2026-03-01' has no UTC offset"),
        (["--from", "2026-03-02T00:00:00Z", "--to", "2026-03-01T00:00:00Z"], "to: is before from"),
        (["--from", "2099-03-01T00:00:00Z", "--to", "2099-03-02T00:00:00Z"], "to: must be in the past"),
        (["--from", "1960-03-01T00:00:00Z", "--to", "2026-03-01T00:00:00Z"], "from: must be between 1970 and 2200"),
        ([*RANGE, "--overlap", "skip"], "'--overlap': 'skip' is not one of"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(
    shell: Shell, recurring: Recurring, arguments: list[str], complaint: str
) -> None:
    name = recurring("--cron", "0 * * * *")
    assert complaint in shell.refusal("backfill", name, *arguments, code=2)
    assert parsed(shell, "ticks", name)["items"] == []


def test_a_queue_a_task_and_everything_are_paused_and_go_on(shell: Shell) -> None:
    for arguments, name in (["--queue", "quiet"], "quiet"), (["--task", "resize"], "resize"):
        ended = shell.foliot("pause", *arguments, "--reason", "maintenance")
        assert (ended.code, ended.err) == (0, f"{name} is paused\n")
        assert [item["name"] for item in parsed(shell, "pause", *arguments, "--json")["items"]] == [name]
        ended = shell.foliot("resume", *arguments)
        assert (ended.code, ended.err) == (0, f"{name} is resumed\n")
    for wrong in (["pause"], ["pause", "report", "--queue", "mail"], ["resume", "--queue", "a", "--task", "b"]):
        assert "give one of NAME_OR_ID" in shell.refusal(*wrong, code=2)
    assert "name: letters, digits" in shell.refusal("pause", "--queue", "a b", code=2)


def test_jobs_that_fit_a_pattern_are_paused_and_go_on_together(shell: Shell, recurring: Recurring) -> None:
    names = [recurring(name=f"together {letter}") for letter in "ab"]
    recurring(name="apart")
    asked = shell.foliot("pause", "--jobs", "together *", stdin=b"n\n")
    assert asked.code == 1
    assert "Pause 2 jobs?" in asked.err
    assert parsed(shell, "jobs", "show", names[0], "--json")["status"] == "active"
    ended = shell.foliot("pause", "--jobs", "together *", "--yes", "--reason", "maintenance")
    assert (ended.code, ended.out.splitlines(), ended.err) == (0, names, "paused: 2\n")
    assert parsed(shell, "jobs", "show", names[0], "--json")["paused_reason"] == "maintenance"
    assert shell.done("resume", "--jobs", "together *", "--yes").splitlines() == names
    assert parsed(shell, "jobs", "show", "apart", "--json")["status"] == "active"
    assert "--jobs: can be combined only with" in shell.refusal("pause", names[0], "--jobs", "x", code=2)
