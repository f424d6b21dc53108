"""The systemd units are valid, and start commands that exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from foliot.cli.main import cli
from foliot.config import Config
from tests.support.processes import ROOT

UNITS = ROOT / "deploy" / "systemd"
NAMES = sorted(path.name for path in UNITS.iterdir() if path.suffix in {".service", ".target"})
PROGRAM = "/opt/foliot/bin/foliot"


def test_there_is_a_unit_for_every_part() -> None:
    assert NAMES == [
        "foliot-migrate.service", "foliot-scheduler.service", "foliot-server.service", "foliot-worker@.service",
        "foliot.target",
    ]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".service")])
def test_unit_starts_a_command_that_exists_and_waits_longer_than_its_grace(name: str) -> None:
    text = (UNITS / name).read_text()
    program, command, *_ = shlex.split(re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)[0])
    assert program == PROGRAM
    assert cli.get_command(click.Context(cli), command) is not None
    assert "User=foliot\n" in text
    if "migrate" not in name:
        assert int(re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)[0]) > Config().grace_seconds


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is missing: install systemd")
    program = str(Path(sys.executable).parent / "foliot")
    for name in NAMES:
        # systemd checks that the program exists.
        (tmp_path / name).write_text((UNITS / name).read_text().replace(PROGRAM, program))
    files = [str(tmp_path / name.replace("@.", "@mail.")) for name in NAMES]
    (tmp_path / "foliot-worker@mail.service").symlink_to(tmp_path / "foliot-worker@.service")
    done = subprocess.run([analyze, "verify", *files], capture_output=True, text=True, check=False)
    # Unknown before systemd 254, as the unit says.
    complaints = [line for line in done.stderr.splitlines() if str(tmp_path) in line and "DelegateSubgroup" not in line]
    assert not complaints
    assert done.returncode == 0, done.stderr
