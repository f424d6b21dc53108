"""Progress bars for long work: on a terminal of any width, and removed at the end."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from foliot.cli import progress
from foliot.cli.columns import width
from tests.support.cluster import Cluster
from tests.support.terminal import Screen, Shell
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.process


@pytest.mark.parametrize("columns", range(1, 100, 7))
def test_a_bar_never_fills_its_line(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for done in (0, 1, 500, 1000, 1200):
        for label in ("applying", "日本" * 10):
            shown = progress.bar(label, done, 1000)
            assert width(shown) < max(columns, 2)
    assert progress.bar("x", 1000, 1000).count("-") == 0


def test_a_bar_shows_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert progress.bar("applying", 5, 10) == f"applying [{'#' * 15}{'-' * 15}] 5/10"
    monkeypatch.setenv("COLUMNS", "20")
    assert progress.bar("applying", 5, 10) == "applying 5/10"


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


async def test_work_without_progress_shows_a_spinner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Tty())

    async def is_shown() -> bool:
        return "replaying 1 s" in screen.getvalue()

    with progress.spinner("replaying", is_quiet=False):
        await until(is_shown)
    assert screen.getvalue().endswith("\r\x1b[K")
    monkeypatch.setattr(sys, "stderr", quiet := Tty())
    with progress.spinner("replaying", is_quiet=True), progress.Progress("replaying", 10, is_quiet=True) as bar:
        bar.advance()
    assert quiet.getvalue() == ""


def test_a_batch_is_submitted_line_by_line(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text('{"execution_time_ms": 1}\n\n{"execution_time_ms": 2.50}\n{}\n')
    ended = shell.foliot("submit", "simulate", "--batch", str(file), "--name", "of a batch")
    assert (ended.code, ended.err) == (0, "3 jobs submitted\n")
    payloads = [json.loads(shell.done("runs", "show", run_id, "--json"))["payload"] for run_id in ended.out.split()]
    assert payloads == [{"execution_time_ms": 1}, {"execution_time_ms": 2.5}, {}]
    (made,) = map(
        json.loads, shell.foliot("submit", "simulate", "--batch", "-", "--json", stdin=b"{}").out.splitlines()
    )
    assert made["created"] is True
    assert shell.foliot("submit", "simulate", "--batch", "-", stdin=b"").err == "0 jobs submitted\n"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"a": 1}\n{"a": \n', ":2: invalid JSON"),
        (b'{"a": 1}\n[1]\n', ":2: a payload must be a JSON object"),
        (b"\xff", "invalid UTF-8 at byte 0"),
    ],
)
def test_a_batch_with_an_invalid_line_is_not_started(shell: Shell, content: bytes, complaint: str) -> None:
    assert complaint in shell.refusal(
        "submit", "simulate", "--name", "not begun", "--batch", "-", stdin=content, code=2
    )
    assert json.loads(shell.done("runs", "--text", "not begun", "--json"))["items"] == []


def test_options_that_a_batch_does_not_support_are_refused(shell: Shell) -> None:
    assert "--batch no-such-file: No such file" in shell.refusal(
        "submit", "simulate", "--batch", "no-such-file", code=2
    )
    for wrong in (["--wait"], ["--cron", "* * * * *"], ["--payload", "{}"], ["--idempotency-key", "k"]):
        assert "can't be combined with --batch" in shell.refusal("submit", "simulate", "--batch", "-", *wrong, code=2)


def test_progress_is_shown_on_a_terminal_only(cluster: Cluster, shell: Shell, tmp_path: Path) -> None:
    # Enough jobs that even a fast machine needs more than the half second before a bar is shown.
    jobs = [{"name": f"bar {number}", "task": "simulate", "cron": "0 0 1 1 *"} for number in range(500)]
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps(jobs))
    with Screen(cluster.url, "apply", str(file), columns=50) as screen:
        assert screen.end(seconds=PATIENCE_SECONDS) == 0
    assert "comparing [" in screen.shown or "applying [" in screen.shown
    assert "\r\x1b[K" in screen.shown
    quiet = shell.foliot("apply", str(file))
    assert (quiet.code, quiet.err) == (0, "")
    with Screen(cluster.url, "apply", str(file), "--prune", "--json", columns=50) as screen:
        assert screen.end(seconds=PATIENCE_SECONDS) == 0
    assert "comparing" not in screen.shown
