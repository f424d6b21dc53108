"""A real server on a real port, for code that submits over HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from foliot.api.app import build_app
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.store.store import Store
from foliot.submission.submitter import Submitter
from tests.support.waiting import until


class Quiet(uvicorn.Server):
    """Leaves the signal handlers of the test run alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@pytest.fixture
async def server_url(store: Store, config: Config, clock: Clock, events: EventBus) -> AsyncIterator[str]:
    submitter = Submitter(store=store, clock=clock, events=events)
    await submitter.start()
    application = build_app(store=store, submitter=submitter, config=config, clock=clock, audit=None, is_open=True)
    server = Quiet(uvicorn.Config(application, loop="none", ws="none", lifespan="off", log_config=None))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve(sockets=[listening]))

        async def is_up() -> bool:
            return server.started

        await until(is_up)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        await serving
    await submitter.stop()
