"""A remote worker whose answers get lost starts no attempt twice, strands no run, and ends each once.

The worker is a real one, and so is the server. Between them, the answer to every third request of a kind gets lost,
after the server has carried it out.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import foliot
from foliot.config import Config
from foliot.errors import FoliotError
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.roles import Role
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.model.worker_protocol import WorkerSettings
from foliot.sdk.server_address import ServerAddress
from foliot.store.store import Store
from foliot.worker.node import WorkerNode
from foliot.worker.remote.backend import RemoteBackend
from foliot.worker.remote.connection import Connection
from foliot.worker.remote.start import adapted
from tests.support.secured_app import secured_app, serving
from tests.support.tokens import make_token
from tests.support.workers import QUICK, ended

NUMBER = 60


class Losing:
    """An application that loses every third answer to requests for one path."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app, self._path = app, path
        self.number = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        self.number += 1
        if self.number % 3 != 1:
            await self._app(scope, receive, send)
            return

        async def nothing(_: Message) -> None: ...

        await self._app(scope, receive, nothing)
        # The server closes the connection of a request that was not answered.
        raise ConnectionAbortedError


def refused(error: FoliotError) -> None:
    raise AssertionError(error)


@pytest.mark.parametrize("path", ["claim", "outcomes", "beat", "register", "wait"])
async def test_lost_answers(store: Store, path: str) -> None:
    started: Counter[str] = Counter()
    app = foliot.App()

    @app.task(retries=0)
    async def count(ctx: foliot.Context) -> None:
        started[str(ctx.run_id)] += 1
        await asyncio.sleep(0.01)

    token = await make_token(store, Role.WORKER, "default")
    clock, events = store.database.clock, EventBus()
    async with secured_app(store, poll_seconds=0.2, worker_ttl_seconds=15, worker_beat_seconds=0.3) as application:
        losing = Losing(application, f"/v1/worker/{path}")
        async with serving(losing) as url:  # type: ignore[arg-type]
            address = ServerAddress(url, token)
            async with Connection(address, clock=clock) as connection:
                settings = await connection.get("settings", WorkerSettings)
                backend = RemoteBackend(connection, address, settings, clock=clock, events=events, on_refused=refused)
                config: Config = adapted(QUICK, settings)
                node = WorkerNode(
                    backend=backend, config=config, clock=clock, events=events, app=app, queues={"default": 7}
                )
                await node.start()
                runs = [NewRun(id=new_id(), task="count", queue="default") for _ in range(NUMBER)]
                for run in runs:
                    await store.run_inserts.insert_runs([run])
                for run in runs:
                    assert (await ended(store, run)).state is RunState.SUCCEEDED
                await node.stop()
        assert losing.number > 1
    assert started == Counter({str(run.id): 1 for run in runs})
