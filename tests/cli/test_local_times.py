"""Times without an offset use the time zone of the job or of this machine, and the command says which."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from foliot.cli.local_times import LOCAL, located
from tests.support.terminal import Shell


@pytest.mark.parametrize(
    ("time", "zone", "found"),
    [
        ("2026-07-01T12:00", "Europe/Berlin", "2026-07-01T12:00:00+02:00"),
        ("2026-12-01", "America/New_York", "2026-12-01T00:00:00-05:00"),
        ("2026-07-01T12:00:00Z", "Europe/Berlin", "2026-07-01T12:00:00Z"),
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T03:30:00+02:00"),
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T02:30:00+02:00"),
    ],
)
def test_a_time_without_an_offset_gets_one(
    time: str, zone: str, found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert located("--at", time, zone, LOCAL) == found
    said = capsys.readouterr().err
    assert said == ("" if time.endswith("Z") else f"--at: {time} is {found} in {zone}, {LOCAL}\n")


@pytest.mark.process
def test_commands_name_the_zone_that_they_use(
    shell: Shell, recurring: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    job = recurring("--timezone", "Europe/Berlin")
    ended = shell.foliot("pause", job, "--until", "2099-07-01T12:00")
    assert "2099-07-01T12:00:00+02:00 in Europe/Berlin, the job's time zone" in ended.err
    ended = shell.foliot("backfill", job, "--from", "2026-03-01", "--to", "2026-03-02", "--dry-run")
    assert "--from: 2026-03-01 is 2026-03-01T00:00:00+01:00 in Europe/Berlin" in ended.err
    ended = shell.foliot("submit", "simulate", "--at", "2099-07-01T12:00", "--json")
    assert "in Asia/Tokyo, this machine's time zone" in ended.err
    assert json.loads(ended.out)["scheduled_at"] == "2099-07-01T03:00:00Z"
    ended = shell.foliot("runs", "--since", "2026-07-01", "--limit", "1")
    assert "--since: 2026-07-01 is 2026-07-01T00:00:00+09:00" in ended.err
    assert shell.foliot("runs", "--since", "2h", "--limit", "1").code == 0
