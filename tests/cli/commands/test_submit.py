"""`foliot submit`: options and payloads, refusals with their exit codes, and waiting for the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.cluster import Cluster
from tests.support.terminal import Shell

pytestmark = pytest.mark.process

LATER = (datetime.now(UTC) + timedelta(days=30)).isoformat()


def submitted(shell: Shell, *arguments: str, stdin: bytes = b"") -> dict[str, Any]:
    """The job as stored by the server."""
    job_id = shell.done("submit", *arguments, stdin=stdin).strip()
    found: dict[str, Any] = json.loads(shell.done("jobs", "show", job_id, "--json"))
    return found


def test_scripts_get_the_id_and_people_a_sentence(shell: Shell) -> None:
    ended = shell.foliot("submit", "simulate")
    assert (ended.code, ended.out) == (0, f"{UUID(ended.out.strip())}\n")
    assert ended.err.startswith("simulate was submitted to queue default")


def test_every_option_of_a_one_off_job_is_sent(shell: Shell) -> None:
    job = submitted(
        shell, "simulate", "--payload", '{"execution_time_ms": 1.50, "n": 12345678901234567890}', "--name",
        "über alles", "--at", LATER,
        "--queue", "mail", "--priority", "7", "--retries", "2", "--timeout", "1h30m", "--backoff", '{"kind": "fixed", '
        '"base_seconds": 5}',
    )  # fmt: skip
    assert (job["task"], job["name"], job["queue"], job["priority"], job["status"]) == (
        "simulate",
        "über alles",
        "mail",
        7,
        "scheduled",
    )
    assert job["payload"] == {"execution_time_ms": 1.5, "n": 12345678901234567890}
    assert job["options"] == {"retries": 2, "timeout_seconds": 5400, "backoff": {"kind": "fixed", "base_seconds": 5}}
    assert datetime.fromisoformat(job["scheduled_at"]) == datetime.fromisoformat(LATER)


def test_limits_keys_and_error_rules_are_sent(shell: Shell) -> None:
    job = submitted(
        shell, "simulate", "--at", LATER, "--expires-at", "2190-01-01T00:00:00Z", "--unique", "limits", "--retry-on",
        "ValueError",
        "--retry-on", "7", "--never-on", "KeyError", "--concurrency", "a=b=2", "--at-limit", "drop_new", "--rate",
        "mail=10/1m",
        "--fairness-key", "tenant", "--guarantee", "at_most_once",
    )  # fmt: skip
    assert (job["unique_key"], job["expires_at"]) == ("limits", "2190-01-01T00:00:00Z")
    assert job["options"] == {
        "retry_on": ["ValueError", 7], "never_on": ["KeyError"], "concurrency": {"key": "a=b", "limit": 2,
            "at_limit": "drop_new"},
        "rate": {"key": "mail", "limit": 10, "period_seconds": 60}, "fairness_key": "tenant",
        "guarantee": "at_most_once",
    }  # fmt: skip
    again = shell.foliot("submit", "simulate", "--at", LATER, "--unique", "limits")
    assert (again.out.strip(), again.err) == (job["id"], "the job already exists and is scheduled\n")
    replaced = shell.foliot("submit", "simulate", "--delay", "1h", "--unique", "limits", "--on-conflict", "replace")
    assert replaced.err == "the job replaced one that had not started, and is scheduled\n"
    assert "has the key 'limits'" in shell.refusal(
        "submit", "simulate", "--unique", "limits", "--on-conflict", "reject", code=1
    )


def test_the_same_idempotency_key_is_the_same_job(shell: Shell) -> None:
    ids = {shell.done("submit", "simulate", "--idempotency-key", "once") for _ in range(2)}
    assert len(ids) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--on-conflict", "reject"], "--on-conflict: requires --unique"),
        (["--at-limit", "wait"], "--at-limit: requires --concurrency"),
        (["--concurrency", "k=x"], "'k=x' is not KEY=LIMIT"),
        (["--rate", "mail=10"], "'mail=10' is not KEY=LIMIT/PERIOD"),
        (["--rate", "mail=10/soon"], "soon"),
    ],
)
def test_an_incomplete_option_is_refused(shell: Shell, arguments: list[str], complaint: str) -> None:
    assert complaint in shell.refusal("submit", "simulate", *arguments, code=2)


@pytest.mark.parametrize(("delay", "seconds"), [("3600", 3600), ("1h30m", 5400), ("7200.5", 7200.5)])
def test_a_delay_is_a_number_or_a_duration(shell: Shell, delay: str, seconds: float) -> None:
    job = submitted(shell, "simulate", "--delay", delay)
    assert datetime.fromisoformat(job["scheduled_at"]) - datetime.fromisoformat(job["created_at"]) == timedelta(
        seconds=seconds
    )


def test_the_start_of_a_delayed_job_is_shown(shell: Shell) -> None:
    assert shell.foliot("submit", "simulate", "--delay", "2h").err.endswith("Z (in 2 h) in queue default\n")


def test_every_option_of_a_recurring_job_is_sent(shell: Shell) -> None:
    job = submitted(
        shell, "simulate", "--name", "all options", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--dst-gap",
        "skip",
        "--dst-fold", "both", "--start-at", LATER, "--end-at", "2199-01-01T00:00:00Z", "--max-runs", "9", "--jitter",
        "1m",
        "--overlap", "buffer_one",
        "--catchup", "all", "--catchup-window", "2h", "--catchup-max", "5",
    )  # fmt: skip
    schedule = job["schedule"]
    assert {name: datetime.fromisoformat(schedule.pop(name)) for name in ("start_at", "end_at")} == {
        "start_at": datetime.fromisoformat(LATER),
        "end_at": datetime(2199, 1, 1, tzinfo=UTC),
    }
    assert schedule == {
        "cron": "30 2 * * *", "timezone": "Europe/Berlin", "dst_gap": "skip", "dst_fold": "both", "jitter_seconds": 60,
        "overlap": "buffer_one", "catchup": "all", "catchup_window_seconds": 7200, "catchup_max": 5,
    }  # fmt: skip
    assert (job["name"], job["runs_left"], job["status"]) == ("all options", 9, "active")


def test_the_first_tick_of_a_recurring_job_is_shown(shell: Shell) -> None:
    ended = shell.foliot("submit", "--command", "true", "--every", "3h", "--name", "three hours")
    assert ended.err.startswith("three hours is active; its first tick is at 2")
    assert ended.err.endswith(" (in 3 h)\n")


def test_a_payload_is_read_from_a_file_or_standard_input(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "päyload.json").write_text('\ufeff{"from": "file"}', encoding="utf-8")
    assert submitted(shell, "simulate", "--payload", f"@{tmp_path / 'päyload.json'}")["payload"] == {"from": "file"}
    assert submitted(shell, "simulate", "--payload", "-", stdin=b'{"from": "stdin"}\n')["payload"] == {"from": "stdin"}


def test_json_is_the_answer_of_the_api(shell: Shell) -> None:
    ended = shell.foliot("submit", "simulate", "--json", "--name", "for programs")
    job = json.loads(ended.out)
    assert (job["name"], job["created"], ended.err) == ("for programs", True, "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "task: say what to run"),
        (["nope-nope"], "no worker knows a task named 'nope-nope'"),
        (["simulate", "--command", "true"], "name different tasks"),
        (["--command", "true", "--payload", '{"a": 1}'], "payload: a command has no payload"),
        (["simulate", "--payload", "[1]"], "payload: must be an object"),
        (["simulate", "--payload", "{"], "'--payload': invalid JSON"),
        (["simulate", "--payload", '{"a": NaN}'], "'--payload': invalid JSON"),
        (["simulate", "--payload", ""], "'--payload': invalid JSON"),
        (["simulate", "--payload", "-"], "'--payload': invalid JSON"),
        (["simulate", "--payload", "[" * 5000 + "]" * 5000], "'--payload': invalid JSON"),
        (["simulate", "--payload", '{"a": "\\u0000"}'], "payload.a: the character NUL"),
        (["simulate", "--payload", "@/no/such/file"], "/no/such/file: No such file or directory"),
        (["simulate", "--payload", "@/"], "/: Is a directory"),
        (["simulate", "--delay", "-5"], "'--delay': can't read '-5' as a duration"),
        (["simulate", "--delay", "nan"], "'--delay': can't read 'nan' as a duration"),
        (["simulate", "--delay", "1e5"], "'--delay': can't read '1e5' as a duration"),
        (["simulate", "--delay", "999999999999"], "delay_seconds: "),
        (["simulate", "--delay", "1", "--at", "2030-01-01T00:00Z"], "give either delay_seconds or schedule_time"),
        (["simulate", "--at", "tomorrow"], "'--at': 'tomorrow' is not an ISO 8601 time"),
        (["simulate", "--at", "9999-12-31T23:59"], "the year 2200"),
        (["simulate", "--at", "9999-12-31T00:00Z"], "schedule_time: must be before the year 2200"),
        (["simulate", "--cron", "61 * * * *"], "cron: minute: 61 is not between 0 and 59"),
        (["simulate", "--cron", "* * *"], "cron: "),
        (["simulate", "--cron", "@daily", "--timezone", "Europe/Nowhere"], "Europe/Nowhere"),
        (["simulate", "--cron", "@daily", "--every", "5m"], "give either cron or every"),
        (["simulate", "--every", "soon"], "every: can't read 'soon'"),
        (["simulate", "--every", "5m", "--wait"], "--wait: can't be used with a recurring job"),
        (["simulate", "--every", "5m", "--jitter", "0.5"], "jitter_seconds: "),
        (["simulate", "--overlap", "skip"], "--overlap: requires a recurring job"),
        (["simulate", "--max-runs", "2"], "--max-runs: requires a recurring job"),
        (["simulate", "--every", "5m", "--overlap", "nope"], "'--overlap': 'nope' is not one of"),
        (["simulate", "--every", "5m", "--name", "a/b"], "name: must have no '/'"),
        (["simulate", "--priority", "high"], "'--priority': 'high' is not a valid integer"),
        (["simulate", "--priority", "9" * 30], "priority: "),
        (["simulate", "--retries", "-1"], "retries: "),
        (["simulate", "--backoff", '{"kind": "none"}'], "backoff.kind: "),
        (["simulate", "--timeout", "0"], "timeout_seconds: "),
        (["simulate", "--name", "\udc80"], "can't be written as JSON"),
        (["simulate", "--queue", "a b"], "queue: "),
        (["simulate", "twice"], "unexpected extra argument"),
    ],
)
def test_invalid_input_exits_with_2_and_names_its_place(shell: Shell, arguments: list[str], complaint: str) -> None:
    assert complaint in shell.refusal("submit", *arguments, code=2)


def test_a_payload_that_is_too_large_is_refused(shell: Shell) -> None:
    said = shell.refusal(
        "submit", "simulate", "--payload", "-", code=2, stdin=json.dumps({"a": "x" * 1_100_000}).encode()
    )
    assert said == "foliot: the body is larger than 1048576 bytes\n"


def test_a_name_that_is_taken_is_a_conflict(shell: Shell) -> None:
    shell.done("submit", "simulate", "--every", "1d", "--name", "taken")
    assert shell.refusal("submit", "simulate", "--every", "1d", "--name", "taken", code=1) == (
        "foliot: name: there is a job named 'taken' already\n"
    )


# --wait


def test_waiting_for_a_completed_job_exits_with_0(shell: Shell) -> None:
    ended = shell.foliot("submit", "--command", "printf 'all \\033[31mred\\tand\\nwell\\n'", "--wait")
    assert ended.code == 0
    assert "status    completed\n" in ended.out
    assert ended.out.endswith("\n\nall \\x1b[31mred\tand\nwell\n")
    assert ended.err.endswith(" was submitted; waiting for it to end\n")


def test_waiting_for_a_failed_job_exits_with_1(shell: Shell) -> None:
    ended = shell.foliot("submit", "--command", "exit 3", "--retries", "0", "--wait")
    assert ended.code == 1
    assert "status    failed\n" in ended.out
    assert "error     ExitCode: exit code 3" in ended.out


@pytest.mark.parametrize(("fail_rate", "code", "status"), [("0", 0, "completed"), ("1", 1, "failed")])
def test_waiting_as_json_prints_the_ended_job_alone(shell: Shell, fail_rate: str, code: int, status: str) -> None:
    ended = shell.foliot(
        "submit", "simulate", "--payload", f'{{"fail_rate": {fail_rate}}}', "--retries", "0", "--wait", "--json"
    )
    job = json.loads(ended.out)
    assert (ended.code, job["status"], job["attempt"]) == (code, status, 1)


def test_waiting_waits_through_retries(shell: Shell) -> None:
    backoff = '{"kind": "fixed", "base_seconds": 0.1, "jitter": 0}'
    ended = shell.foliot(
        "submit",
        "simulate",
        "--payload",
        '{"fail_rate": 1}',
        "--retries",
        "1",
        "--backoff",
        backoff,
        "--wait",
        "--json",
    )
    assert (ended.code, json.loads(ended.out)["attempt"]) == (1, 2)


def test_ctrl_c_ends_the_waiting_but_not_the_job(shell: Shell, cluster: Cluster) -> None:
    waiting = subprocess.Popen(
        [sys.executable, "-m", "foliot", "submit", "simulate", "--delay", "1h", "--wait"],
        env=os.environ | {"FOLIOT_URL": cluster.url}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert waiting.stderr is not None
    job_id = waiting.stderr.readline().split()[0]
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out, err) == (
        130,
        "",
        f"\nThe job keeps running. To see it: foliot jobs show {job_id}\n",
    )
    assert json.loads(shell.done("jobs", "show", job_id, "--json"))["status"] == "scheduled"
