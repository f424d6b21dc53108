"""`foliot backfill`: a dry run, a confirmation, and runs for past ticks."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.cluster import Cluster
from tests.support.terminal import Shell, on_a_terminal

pytestmark = pytest.mark.process

Recurring = Callable[..., str]
RANGE = ("--from", "2026-03-01T00:00:00Z", "--to", "2026-03-01T05:59:59+00:00")


def test_a_dry_run_shows_the_ticks_and_runs_none(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--cron", "0 * * * *")
    ended = shell.foliot("backfill", name, *RANGE, "--dry-run")
    header, *lines, total = ended.out.splitlines()
    assert (ended.code, ended.err, header.split(), len(lines)) == (0, "", ["TICK", "WHEN"], 6)
    assert lines[0].startswith("2026-03-01T00:00:00Z  ")
    assert total == "6 ticks to run; 0 already ran"
    document = shell.json("backfill", name, *RANGE, "--dry-run")
    assert (len(document["ticks"]), document["is_dry_run"]) == (6, True)
    # The next hour may have begun in the meantime.
    assert [tick for tick in shell.json("ticks", name)["items"] if tick["tick_at"] in document["ticks"]] == []


def test_a_script_needs_no_confirmation(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--cron", "0 * * * *")
    ended = shell.foliot("backfill", name, *RANGE, "--overlap", "allow_all")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.endswith("6 ticks to run; 0 already ran\n6 ticks submitted\n")
    assert len(shell.json("ticks", name)["items"]) == 6
    again = shell.foliot("backfill", name, *RANGE, "--json")
    assert json.loads(again.out) == {"ticks": [], "already_run": 6, "is_dry_run": False}
    assert again.err == "0 ticks to run; 6 already ran\n"


def test_a_long_list_of_ticks_is_shortened(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--cron", "* * * * *")
    lines = shell.done("backfill", name, *RANGE, "--dry-run").splitlines()
    assert len(lines) == 1 + 20 + 2
    assert lines[-2:] == ["... and 340 more, up to 2026-03-01T05:59:00Z", "360 ticks to run; 0 already ran"]


@pytest.mark.parametrize(("typed", "code", "runs"), [("n\n", 1, 0), ("\n", 1, 0), ("\x04", 1, 0), ("y\n", 0, 6)])
def test_a_terminal_has_to_confirm(
    shell: Shell, cluster: Cluster, recurring: Recurring, typed: str, code: int, runs: int
) -> None:
    name = recurring("--cron", "0 * * * *")
    ended = on_a_terminal(cluster.url, "backfill", name, *RANGE, typed=typed)
    assert f"Run 6 ticks of {name}? [y/N]: " in ended.out
    assert (ended.code, len(shell.json("ticks", name)["items"])) == (code, runs)
    assert "Traceback" not in ended.out


def test_yes_skips_the_confirmation(shell: Shell, cluster: Cluster, recurring: Recurring) -> None:
    name = recurring("--cron", "0 * * * *")
    ended = on_a_terminal(cluster.url, "backfill", name, *RANGE, "--yes")
    assert ended.code == 0
    assert "[y/N]" not in ended.out
    assert len(shell.json("ticks", name)["items"]) == 6


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "Missing option '--from'"),
        (["--from", "2026-03-01T00:00:00Z"], "Missing option '--to'"),
        (["--from", "2026-03-01T00:00:00Z", "--to", "yesterday"], "'--to': 'yesterday' is not an ISO 8601 time"),
        (["--from", "2026-03-02T00:00:00Z", "--to", "2026-03-01T00:00:00Z"], "to: is before from"),
        (["--from", "2099-03-01T00:00:00Z", "--to", "2099-03-02T00:00:00Z"], "to: must be in the past"),
        (["--from", "1960-03-01T00:00:00Z", "--to", "2026-03-01T00:00:00Z"], "from: must be between 1970 and 2200"),
        ([*RANGE, "--overlap", "skip"], "'--overlap': 'skip' is not one of"),
    ],
)
def test_an_invalid_range_is_refused(shell: Shell, recurring: Recurring, arguments: list[str], complaint: str) -> None:
    name = recurring("--cron", "0 * * * *")
    assert complaint in shell.refusal("backfill", name, *arguments, code=2)
    assert shell.json("ticks", name)["items"] == []
