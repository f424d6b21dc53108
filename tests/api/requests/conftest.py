"""Fixtures for requests that are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest


@pytest.fixture
async def nothing_is_stored(sql: Any) -> AsyncIterator[None]:
    yield
    assert await sql.fetchval("select (select count(*) from foliot.runs) + (select count(*) from foliot.jobs)") == 0
