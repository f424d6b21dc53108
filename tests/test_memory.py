"""The in-memory directory of the server of a test run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.memory import directory_in_memory
from tests.support.processes import ROOT

USER = """
import sys
from pathlib import Path
from tests.support.memory import directory_in_memory
memory = Path(sys.argv[1])
with directory_in_memory(otherwise=memory, memory=memory, room_bytes=0) as directory:
    (directory / "data").write_text("")
    print(directory, flush=True)
    input()
"""


def test_the_directory_is_removed_when_it_is_not_needed(tmp_path: Path) -> None:
    with directory_in_memory(otherwise=tmp_path / "disk", memory=tmp_path, room_bytes=0) as directory:
        (directory / "data").write_text("")
        assert list(tmp_path.iterdir()) == [directory]
    assert list(tmp_path.iterdir()) == []


def test_the_disk_is_used_without_enough_memory(tmp_path: Path) -> None:
    for memory, room_bytes in ((tmp_path, 1 << 62), (tmp_path / "nowhere", 0)):
        with directory_in_memory(otherwise=tmp_path / "disk", memory=memory, room_bytes=room_bytes) as directory:
            assert directory == tmp_path / "disk"
    assert list(tmp_path.iterdir()) == []


def test_directories_of_dead_processes_are_removed_and_others_are_not(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", USER, tmp_path], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout is not None
        in_use = Path(user.stdout.readline().strip())
        with directory_in_memory(otherwise=tmp_path, memory=tmp_path, room_bytes=0) as directory:
            assert {in_use, directory} == set(tmp_path.iterdir())
        user.kill()
    with directory_in_memory(otherwise=tmp_path, memory=tmp_path, room_bytes=0) as directory:
        assert list(tmp_path.iterdir()) == [directory]
