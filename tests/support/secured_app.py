"""The application with its audit log, for callers with and without tokens; and raw requests."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import msgspec
import uvicorn

from foliot.api.app import Application, build_app
from foliot.api.security.audit_log import AuditLog
from foliot.config import Config
from foliot.events import EventBus
from foliot.store.store import Store
from foliot.submission.submitter import Submitter
from tests.support.waiting import PATIENCE_SECONDS


@asynccontextmanager
async def secured_app(store: Store, *, is_open: bool = False, **settings: object) -> AsyncIterator[Application]:
    clock, events = store.database.clock, EventBus()
    submitter = Submitter(store=store, clock=clock, events=events)
    audit = AuditLog(store=store, clock=clock, events=events)
    await submitter.start()
    await audit.start()
    config = msgspec.convert(settings, Config)
    app = build_app(store=store, submitter=submitter, audit=audit, config=config, clock=clock, is_open=is_open)
    yield app
    await app.from_workers.waiting_room.close()
    await submitter.stop()
    await audit.stop()


@asynccontextmanager
async def serving(app: Application) -> AsyncIterator[str]:
    """Serves the application on a real socket, and yields its URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", lifespan="off", proxy_headers=False))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


def client_at(app: Application, address: str) -> httpx.AsyncClient:
    """A client whose connection comes from that address."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app, client=(address, 4711)), base_url="http://localhost:8000"
    )


@dataclass(frozen=True)
class RawAnswer:
    status: int
    text: str


async def send_raw(url: str, request: bytes) -> RawAnswer:
    """Sends bytes to a server and reads until it closes. The request must contain `Connection: close`."""
    address = urlsplit(url)
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        try:
            writer.write(request)
            text = (await reader.read()).decode("latin-1")
        finally:
            writer.close()
            await writer.wait_closed()
    return RawAnswer(int(text.split(" ", 2)[1]), text)
