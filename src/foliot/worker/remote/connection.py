"""Sends the messages of a worker to an API server, over connections that stay open.

The parts of a worker know one kind of trouble: `StoreUnavailable`, which passes. So that is what every trouble with the
network, a proxy or the server becomes. A server that refuses the token is another matter: it calls `on_refused`, which
stops the worker.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import msgspec

from foliot.clock import Clock
from foliot.errors import Busy, FoliotError, Forbidden, StoreUnavailable, Unauthenticated
from foliot.sdk.http_protocol import Wire
from foliot.sdk.server_address import ServerAddress
from foliot.service import backoff

T = TypeVar("T")
ANSWER_SECONDS = 30.0
GATEWAY_ERRORS = frozenset({500, 502, 504})
"""The server, or a proxy in front of it, may have carried out the request."""


class Connection:
    def __init__(
        self, address: ServerAddress, *, clock: Clock, on_refused: Callable[[FoliotError], None] = lambda _: None
    ) -> None:
        self._wire = Wire(address.url, token=address.token, namespace=address.namespace, answer_seconds=ANSWER_SECONDS)
        self._clock = clock
        self._on_refused = on_refused
        self._http = httpx.AsyncClient(**self._wire.settings)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def get(self, path: str, kind: type[T]) -> T:
        return self._decoded(await self._sent("GET", path, None, ANSWER_SECONDS), kind)

    async def ask(self, path: str, message: msgspec.Struct, kind: type[T], *, wait_seconds: float = 0.0) -> T:
        """Raises `StoreUnavailable`, or the error that the server answered. `wait_seconds`: the time that the server
        may add on purpose."""
        content = msgspec.json.encode(message)
        return self._decoded(await self._sent("POST", path, content, ANSWER_SECONDS + wait_seconds), kind)

    async def ask_patiently(self, path: str, message: msgspec.Struct, kind: type[T]) -> T:
        """Asks again until there is an answer. For requests of attempts, which end when the lease is lost, and which
        may be repeated."""
        failures = 0
        while True:
            try:
                return await self.ask(path, message, kind)
            except StoreUnavailable:
                failures += 1
                await self._clock.sleep(backoff(failures))

    async def _sent(self, method: str, path: str, content: bytes | None, seconds: float) -> httpx.Response:
        arguments: dict[str, Any] = {"timeout": httpx.Timeout(seconds, connect=min(seconds, 5.0))}
        if content is not None:
            arguments |= {"content": content, "headers": {"Content-Type": "application/json"}}
        try:
            answer = await self._http.request(method, f"/v1/worker/{path}", **arguments)
        except httpx.HTTPError as error:
            failure = self._wire.failure(error, is_reading=method == "GET")
            raise StoreUnavailable(failure.detail, is_doubtful=failure.is_doubtful) from None
        if answer.is_success:
            return answer
        refusal = self._wire.refusal(answer)
        if isinstance(refusal, Unauthenticated | Forbidden):
            self._on_refused(refusal)
        if isinstance(refusal, Busy):
            raise StoreUnavailable(refusal.detail)
        if answer.status_code in GATEWAY_ERRORS:
            raise StoreUnavailable(refusal.detail, is_doubtful=True)
        raise refusal

    def _decoded(self, answer: httpx.Response, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except msgspec.DecodeError as error:
            raise self._wire.foreign(f"an answer that this worker does not understand ({error})") from None
