"""The real application on the real store, called in process without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from foliot.api.app import build_app
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.store.store import Store
from foliot.submission.submitter import Submitter

TASKS = {"send_invoice": "mail", "shell": "default", "simulate": "default"}


@pytest.fixture
async def app(store: Store, config: Config, clock: Clock, events: EventBus) -> AsyncIterator[FastAPI]:
    await store.workers.announce_tasks(TASKS)
    submitter = Submitter(store=store, clock=clock, events=events)
    await submitter.start()
    yield build_app(store=store, submitter=submitter, config=config, clock=clock, audit=None, is_open=True)
    await submitter.stop()


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """An error that the application does not turn into a response is raised in the test."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8000") as client:
        yield client
