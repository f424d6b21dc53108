"""Data directories of any kind are used, or refused with a reason."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from pathlib import Path

import pytest

from foliot.embedded import find_url
from foliot.errors import EmbeddedPostgresError
from tests.support.embedded import (
    borrowed,
    fetch,
    handle,
    owner_process,
    processes_of,
    running,
    said,
)
from tests.support.waiting import PATIENCE_SECONDS


@pytest.mark.parametrize("name", ["x" * 120, "a,b", "sp ace", "ünïcode", "quo'te\"%"])
async def test_any_path_works_as_a_directory(made_once: Path, tmp_path: Path, name: str) -> None:
    with borrowed(made_once, tmp_path / name) as directory:
        async with running(handle(directory)) as url:
            assert await fetch(url, "select 1") == 1
            assert find_url(directory) == url
            sockets = (directory / "run").resolve()
        if sockets.parent != directory:
            assert not sockets.exists()
            assert not (directory / "run").is_symlink()
        assert (sockets.parent == directory) == (name == "ünïcode")


async def test_short_socket_directory_of_a_killed_owner_is_removed_by_the_next(made_once: Path, tmp_path: Path) -> None:
    with borrowed(made_once, tmp_path / ("x" * 120)) as directory:
        with owner_process(directory) as owner:
            said(owner)
            left = (directory / "run").readlink()
            owner.kill()
        assert left.exists()
        async with running(handle(directory)):
            assert not left.exists()


async def test_data_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("9\n", encoding="ascii")
    for _ in range(2):  # the second time as well, and not «in use»: the lock was given back
        with pytest.raises(EmbeddedPostgresError, match="was made by PostgreSQL 9, which is not here"):
            await handle(tmp_path).start()


async def test_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(EmbeddedPostgresError, match=r"file.* not a directory.*FOLIOT_DATA"):
            await handle(path).start()


async def test_strange_files_in_place_of_data_are_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "thesis.txt").touch()
    with pytest.raises(EmbeddedPostgresError, match="holds files but no PostgreSQL data"):
        await handle(tmp_path).start()
    assert (tmp_path / "postgres" / "thesis.txt").exists()


async def test_directory_with_other_files_keeps_its_mode(directory: Path) -> None:
    directory.chmod(0o755)
    async with running(handle(directory)):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o755
        assert stat.S_IMODE((directory / "run").stat().st_mode) == 0o700
    directory.chmod(0o700)


async def test_removed_lock_is_recreated_by_the_next_start(directory: Path) -> None:
    postgres = handle(directory)
    async with running(postgres):
        (directory / "owner.lock").unlink()
        os.kill(processes_of(directory)[0], signal.SIGKILL)
        await asyncio.wait_for(postgres.exited.wait(), PATIENCE_SECONDS)
        assert await fetch(await postgres.start(), "select 1") == 1
        with pytest.raises(EmbeddedPostgresError, match=f"in use by process {os.getpid()}"):
            await handle(directory).start()
