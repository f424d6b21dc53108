"""Runs the code blocks of the README in order, as a reader would."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from foliot.embedded import find_url
from tests.support.ports import free_port
from tests.support.processes import ROOT, is_alive
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DATABASE = "postgresql://foliot@127.0.0.1:5432/foliot"
ARGS = re.compile(r'make up(?: ARGS="([^"]*)")?')
PAUSE = re.compile(r"^sleep (\d+)$", re.MULTILINE)
# The data directory of `make up`.
DATA = re.compile(r"(?<=[ \"'])\.foliot\b")


class Reader:
    """A user who follows the README, with one terminal for `make up` and another for the rest."""

    def __init__(self, directory: Path, *, works_in: Path = ROOT) -> None:
        self._directory = directory
        self._works_in = works_in
        self._port, self._other_port = free_port(), free_port()
        self._up: asyncio.subprocess.Process | None = None
        path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
        url = f"http://127.0.0.1:{self._port}"
        self._environment = os.environ | {"PYTHONPATH": str(directory), "PATH": path, "FOLIOT_URL": url}

    async def follow(self, language: str, text: str) -> str:
        if language == "python":
            name = text.partition("\n")[0].removeprefix("# ")
            (self._directory / name).write_text(text)
            return ""
        if text.startswith("make up"):
            await self.stop()
            await self._start(text)
            return ""
        return await self._type(text)

    async def stop(self) -> None:
        if self._up is None:
            return
        if self._up.returncode is not None:
            # It has failed to start, which is already reported.
            return
        children = psutil.Process(self._up.pid).children(recursive=True)
        os.killpg(self._up.pid, signal.SIGINT)
        await self._up.wait()
        self._up = None

        async def all_gone() -> bool:
            return not [child for child in children if is_alive(child)]

        # Dead, but perhaps not reaped yet.
        await until(all_gone)

    async def _start(self, text: str) -> None:
        found = ARGS.match(text)
        assert found is not None
        arguments = f"{found[1] or ''} --port {self._port} --data {self._directory / 'data'}"
        self._up = await asyncio.create_subprocess_exec(
            "make", "up", f"ARGS={arguments}", cwd=ROOT, env=self._environment, start_new_session=True, stdin=DEVNULL
        )
        async with httpx.AsyncClient() as client:

            async def answers() -> bool:
                assert self._up is not None
                assert self._up.returncode is None, "make up has ended"
                try:
                    return (await client.get(f"http://127.0.0.1:{self._port}/readyz")).status_code == 200
                except httpx.TransportError:
                    return False

            await until(answers)

    async def _type(self, text: str) -> str:
        script = text.replace("127.0.0.1:8000", f"127.0.0.1:{self._port}").replace("8001", str(self._other_port))
        script = script.replace(DATABASE, find_url(self._directory / "data") or DATABASE)
        script = DATA.sub(str(self._directory / "data"), script)
        # Pauses on the page are longer here, because the machine may be busy.
        script = PAUSE.sub(lambda pause: f"sleep {5 * int(pause[1])}", script)
        shell = await asyncio.create_subprocess_exec(
            "bash", "-euo", "pipefail", "-c", script,
            cwd=self._works_in, env=self._environment, stdin=DEVNULL, stdout=PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = await shell.communicate()
        finally:
            # Background processes of the block must not remain.
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
        assert shell.returncode == 0, script
        return output.decode()


def blocks(page: str) -> Iterator[tuple[str, str]]:
    for found in BLOCK.finditer(page):
        # Running the tests would run this test again.
        if found[2] != "make test\n":
            yield found[1], found[2]


async def followed(page: str, directory: Path, works_in: Path = ROOT) -> list[str]:
    """The output of each block."""
    reader, outputs = Reader(directory, works_in=works_in), []
    try:
        for language, text in blocks(page):
            outputs.append(await reader.follow(language, text))
    finally:
        await reader.stop()
    return outputs


@pytest.mark.slow
async def test_following_the_readme_works(tmp_path: Path) -> None:
    outputs = await followed(README, tmp_path)
    first, *_, last = [output for output in outputs if output]
    assert "status    completed" in first
    assert "hello from" in first
    assert "heartbeat" in first
    assert 'result    "invoice sent to customer 7"' in last


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_the_first_command_comes_early_and_all_commands_exist() -> None:
    first = next(number for number, line in enumerate(README.splitlines(), 1) if line == "```bash") + 1
    assert first <= 25
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert (
        set(re.findall(r"make ([a-z]+)\b", " ".join(re.findall(r"`make [a-z]+`|^make [a-z]+", README, re.MULTILINE))))
        <= targets
    )


def test_links_have_targets() -> None:
    named = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
    for page in [*(ROOT / name for name in named), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
