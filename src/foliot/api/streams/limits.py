"""How many streams there may be at once: of events and of logs, for one token, for one namespace, and altogether.

A stream takes its place before its answer begins and gives it back when the answer has ended, however it ends. The
total protects the server. The smaller limits keep one caller, or one team, from using up the places of everybody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from foliot.api.problems import problem_of
from foliot.api.security.client_address import ADDRESS, limit_key_of
from foliot.api.security.permissions import CALLER
from foliot.config import Config
from foliot.errors import TooManyFollowers
from foliot.model.roles import Caller

RETRY_SECONDS = 5
# A browser must not show output of a job as a page.
HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
EVENTS, LOGS = "event", "log"


@dataclass(frozen=True, slots=True)
class Limit:
    most: int
    counted: str
    """The kind of owner that it counts, as a key."""
    of: str
    """The same in words, for errors."""
    setting: str


class StreamLimits:
    """The places for streams of one server process."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._taken: Counter[str] = Counter()

    def count(self, kind: str) -> int:
        """The open streams of a kind."""
        return self._taken[f"kind {kind}"]

    @contextmanager
    def place(self, kind: str, caller: Caller, address: str | None) -> Iterator[None]:
        """Holds a place while the context is active. Raises `TooManyFollowers`."""
        limits = self._limits(kind, caller, address)
        for limit in limits:
            if self._taken[limit.counted] >= limit.most:
                raise TooManyFollowers(
                    f"{limit.of} follows {limit.most} streams through this server already; close one, try again later, "
                    f"or raise {limit.setting}",
                    retry_after=RETRY_SECONDS,
                )
        names = [limit.counted for limit in limits]
        self._taken.update(names)
        try:
            yield
        finally:
            self._taken.subtract(names)
            for name in names:
                if not self._taken[name]:
                    del self._taken[name]

    def _limits(self, kind: str, caller: Caller, address: str | None) -> tuple[Limit, ...]:
        config, namespace = self._config, caller.namespace.name
        # In local open mode a caller has no token, so its address counts.
        who = f"token {caller.token_id}" if caller.token_id else f"address {limit_key_of(address)}"
        most, setting = {
            EVENTS: (config.event_followers_max, "event_followers_max"),
            LOGS: (config.log_followers_max, "log_followers_max"),
        }[kind]
        return (
            Limit(
                config.followers_per_token_max,
                who,
                "this token" if caller.token_id else "this address",
                "followers_per_token_max",
            ),
            Limit(
                config.followers_per_namespace_max,
                f"namespace {namespace}",
                f"the namespace {namespace!r}",
                "followers_per_namespace_max",
            ),
            Limit(most, f"kind {kind}", "everybody together", setting),
        )


class Stream(StreamingResponse):
    """A response of server-sent events, or 429 if there is no free place."""

    def __init__(self, events: AsyncGenerator[bytes], *, streams: StreamLimits, kind: str) -> None:
        super().__init__(events, media_type="text/event-stream", headers=HEADERS)
        self._events = events
        self._streams = streams
        self._kind = kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._streams.place(self._kind, scope[CALLER], scope[ADDRESS]):
                try:
                    await super().__call__(scope, receive, send)
                finally:
                    # After a disconnect nothing else closes the generator.
                    await self._events.aclose()
        except TooManyFollowers as error:
            await problem_of(error, Request(scope))(scope, receive, send)
