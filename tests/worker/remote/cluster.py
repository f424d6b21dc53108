"""A server that asks for tokens, a scheduler node, and workers that reach only the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.roles import Role
from foliot.store.store import open_store
from tests.support.api import Api
from tests.support.processes import FoliotProcess
from tests.support.tokens import bearer, make_token
from tests.support.waiting import PATIENCE_SECONDS, until

APP = "tests.worker.remote.shop_app:app"
# A short lease, so that runs of killed workers come back soon.
SETTINGS = {
    "FOLIOT_PORT": "0",
    "FOLIOT_WORKER_TTL_SECONDS": "4",
    "FOLIOT_WORKER_BEAT_SECONDS": "0.5",
    "FOLIOT_REAPER_SECONDS": "0.2",
    "FOLIOT_POLL_SECONDS": "0.5",
}


@dataclass
class RemoteCluster:
    server: FoliotProcess
    url: str
    api: Api
    tokens: Mapping[str, str]

    def worker(self, *arguments: str, app: str = APP, token: str = "worker", url: str = "") -> FoliotProcess:
        environment = {"FOLIOT_TOKEN": self.tokens.get(token, token)}
        return FoliotProcess("worker", app, "--server", url or self.url, *arguments, environment=environment)

    async def tasks_known(self, task: str) -> None:
        async def look() -> bool:
            answer = await self.api.client.get("/v1/tasks", headers=self.api.headers)
            return any(one["name"] == task for one in answer.json()["items"])

        await until(look)


@asynccontextmanager
async def remote_cluster(database_url: str, *, port: int = 0) -> AsyncIterator[RemoteCluster]:
    clock, events = SystemClock(), EventBus()
    async with open_store(database_url, config=Config(), clock=clock, events=events, part="test") as store:
        tokens = {
            "admin": await make_token(store, Role.ADMIN),
            "worker": await make_token(store, Role.WORKER, "default", name="worker"),
            "other": await make_token(store, Role.WORKER, "default", name="other"),
            "theirs": await make_token(store, Role.WORKER, "theirs", name="theirs"),
            "viewer": await make_token(store, Role.VIEWER, "default", name="viewer"),
        }
    environment = SETTINGS | {"FOLIOT_DATABASE_URL": database_url}
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            FoliotProcess("server", environment=environment | {"FOLIOT_PORT": str(port)})
        )
        await stack.enter_async_context(FoliotProcess("scheduler", environment=environment))
        started = await server.event("ProcessStarted", part="server")
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=started["address"], timeout=PATIENCE_SECONDS)
        )
        yield RemoteCluster(server, started["address"], Api(client, bearer(tokens["admin"])), tokens)
