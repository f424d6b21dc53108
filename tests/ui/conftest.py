"""A small built UI in a directory, and the application that serves it."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from foliot.api import problems
from foliot.config import Config
from foliot.ui import serving
from foliot.ui.files import PREFIX_MARK, Files

SCRIPT = b"export const words = 'a script';\n" * 40
INDEX = f'<!doctype html><meta {PREFIX_MARK} /><script src="/ui/assets/main-1a2b.js"></script>'


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(INDEX)
    (tmp_path / "secret.txt").write_text("not to be served")
    (tmp_path / "THIRD_PARTY.txt").write_text("licences")
    (tmp_path / "assets" / "main-1a2b.js").write_bytes(SCRIPT)
    (tmp_path / "assets" / "main-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT))
    (tmp_path / "assets" / "main-1a2b.js.br").write_bytes(b"brotli")
    return tmp_path


@pytest.fixture
async def browser(dist: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that serves only the UI."""
    async with client_of(Files(dist)) as client:
        yield client


def client_of(files: Files, **settings: str) -> httpx.AsyncClient:
    app = FastAPI(openapi_url=None)
    problems.install(app)
    serving.install(app, Config(**settings), files)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8000")
