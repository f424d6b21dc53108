"""Starting as root, as nobody and as a plain user."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from foliot.embedded.binaries import find_binaries
from tests.support.embedded import (
    NAMELESS,
    NOBODY,
    OWNER,
    borrowed,
    fetch,
    handle,
    owner_process,
    processes_of,
    refusal,
    root_only,
    running,
    said,
    until,
)


def python_for(user: int) -> str:
    """A Python that this user may run."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        check = [python, "-c", f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"]
        with contextlib.suppress(OSError):
            if subprocess.run(check, user=user, group=user, extra_groups=[], capture_output=True).returncode == 0:
                return python
    pytest.skip(f"user id {user} can run no Python {platform.python_version()} here")


@root_only
@pytest.mark.parametrize("user", [NOBODY, NAMELESS])
async def test_runs_as_a_plain_user_with_or_without_a_name(public_path: Path, user: int) -> None:
    python = python_for(user)
    public_path.chmod(0o777)
    directory = public_path / "foliot"
    with owner_process(directory, python=python, user=user) as owner:
        assert await fetch(said(owner), "select 1") == 1
        assert {path.stat().st_uid for path in directory.rglob("*")} == {user}
        owner.kill()
        await until(lambda: not processes_of(directory))


@root_only
async def test_unwritable_directory_is_named(public_path: Path) -> None:
    python = python_for(NOBODY)
    (public_path / "empty").mkdir(mode=0o755)
    for path, culprit in (
        (public_path / "foliot", public_path / "foliot"),
        (public_path / "empty", public_path / "empty"),
    ):
        with owner_process(path, python=python, user=NOBODY) as owner:
            message = await asyncio.to_thread(refusal, owner)
        assert f"refused: {culprit}" in message
        assert f"can't be used by user id {NOBODY}" in message
        assert "Traceback" not in message


@root_only
async def test_root_without_namespaces_runs_postgres_as_nobody(made_once: Path, public_path: Path) -> None:
    with borrowed(made_once, public_path / "foliot") as directory:
        with owner_process(directory, script=without_namespaces(OWNER)) as owner:
            assert await fetch(said(owner), "select 1") == 1
            assert {Path(f"/proc/{pid}").stat().st_uid for pid in processes_of(directory)} == {NOBODY}
            assert (directory / "postgres").stat().st_uid == NOBODY
            owner.kill()
            await until(lambda: not processes_of(directory))
        # Back to a system where namespaces work: the data belongs to root again.
        async with running(handle(directory)) as url:
            assert await fetch(url, "select 1") == 1
            assert {path.stat().st_uid for path in directory.rglob("*")} == {0}


@root_only
async def test_unreachable_directory_or_programs_are_reported_for_nobody(tmp_path: Path, public_path: Path) -> None:
    binaries = tmp_path / "bin"
    binaries.symlink_to(find_binaries("", Path("/no/such/data")).directory)
    for directory, named, complaint in (
        (tmp_path / "foliot", "", f"can't use {tmp_path}/foliot"),
        (public_path / "foliot", str(binaries), f"can't run {binaries}/initdb"),
    ):
        with owner_process(directory, script=without_namespaces(OWNER), binaries=named) as owner:
            message = await asyncio.to_thread(refusal, owner)
        assert f"runs as user id {NOBODY} here and {complaint}" in message


def without_namespaces(script: str) -> str:
    """The script under a seccomp filter like Docker's: unshare answers «not permitted»."""
    numbers = {"x86_64": 272, "aarch64": 97}
    if platform.machine() not in numbers or ctypes.sizeof(ctypes.c_void_p) != 8:
        pytest.skip(f"the number of unshare on {platform.machine()} is not known here")
    return f"""
import ctypes, struct
instructions = [(0x20, 0, 0, 0), (0x15, 0, 1, {numbers[platform.machine()]}), (0x06, 0, 0, 0x00050001), (0x06, 0, 0,
    0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in instructions))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
{script}"""
