"""The parts that the routes for workers share: leases, the waiting room, outcomes, and the check of the token."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec
from starlette.requests import Request

from foliot.api.remote_workers.holders import Holders
from foliot.api.remote_workers.leases import Leases
from foliot.api.remote_workers.outcome_writer import OutcomeWriter
from foliot.api.remote_workers.waiting_room import WaitingRoom
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.security.permissions import CALLER, namespace_of_caller
from foliot.clock import Clock
from foliot.config import Config
from foliot.model.namespace import Namespace
from foliot.model.roles import Caller
from foliot.model.run import RunOptions
from foliot.model.worker_protocol import FromWorker, Message
from foliot.store.store import Store

M = TypeVar("M", bound=Message)
W = TypeVar("W", bound=FromWorker)


class WorkerRequests:
    def __init__(
        self, *, store: Store, config: Config, clock: Clock, listen_url: str | None, stopping: asyncio.Event
    ) -> None:
        self.store = store
        self.config = config
        self.clock = clock
        self.holders = Holders(store)
        self.leases = Leases(store=store, clock=clock, ttl_seconds=config.worker_ttl_seconds)
        self.waiting_room = WaitingRoom(
            store=store,
            clock=clock,
            poll_seconds=config.poll_seconds,
            listen_url=listen_url,
            stopping=stopping,
            on_worker_hint=self.leases.ask_soon,
        )
        self.writer = OutcomeWriter(
            store,
            result_max_bytes=config.result_max_bytes,
            output_max_bytes=config.output_max_bytes,
            defaults=RunOptions(retries=config.retries, timeout_seconds=config.timeout_seconds),
        )

    async def message(self, request: Request, decoder: msgspec.json.Decoder[M]) -> tuple[M, Namespace]:
        body = await read(request, self.config.batch_max_bytes)
        return await decoded(body, decoder), namespace_of_caller(request)

    async def from_worker(self, request: Request, decoder: msgspec.json.Decoder[W]) -> tuple[W, Namespace]:
        """Raises `UnknownWorker` unless the worker registered with the caller's token."""
        message, namespace = await self.message(request, decoder)
        await self.holders.check(message.worker_id, caller_in(request))
        return message, namespace


def caller_in(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller
