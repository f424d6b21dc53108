"""Directories with a fresh embedded PostgreSQL, created once and shared."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliot.clock import SystemClock
from foliot.embedded import EmbeddedPostgres
from tests.support.embedded import (
    FAST,
    borrowed,
)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which a server has run once, for tests that do not need a first start. Tests borrow it in turn,
    because copying its 1300 files would cost more than the rest of a test."""

    async def make(directory: Path) -> None:
        postgres = EmbeddedPostgres(directory, clock=SystemClock(), settings=FAST)
        await postgres.start()
        await postgres.stop()

    directory = tmp_path_factory.mktemp("embedded") / "made"
    asyncio.run(make(directory))
    return directory


@pytest.fixture
def directory(made_once: Path, tmp_path: Path) -> Iterator[Path]:
    with borrowed(made_once, tmp_path / "foliot") as directory:
        yield directory


@pytest.fixture
def public_path() -> Iterator[Path]:
    """Like tmp_path, but below directories that every user may pass."""
    path = Path(tempfile.mkdtemp(prefix="foliot-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A socket path is limited to 107 characters, and pytest's own directories may be longer."""
    with tempfile.TemporaryDirectory(prefix="foliot-") as directory:
        yield Path(directory)
