"""Authenticates requests before routing: assigns an id, identifies the caller, and enforces request limits.

In local open mode (`foliot up` on the loopback interface) a request that passes `local_mode` needs no token. Otherwise
it needs `Authorization: Bearer foliot_...`. Tokens are cached for two seconds, so a revoked token is refused within
that time everywhere, and open streams that use it end.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import OrderedDict
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foliot.api.problems import REQUEST_ID, problem_of, serve
from foliot.api.security.audit_log import LOG, AuditLog, note
from foliot.api.security.client_address import ADDRESS, TrustedProxies, limit_key_of
from foliot.api.security.local_mode import refuse_foreign_request, refuse_repeated_headers, refuse_unsupported_body
from foliot.api.security.permissions import CALLER, REFUSAL
from foliot.api.security.request_limits import RateLimit
from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import FoliotError, Invalid, TooManyRequests, Unauthenticated
from foliot.model.ids import new_id
from foliot.model.permissions import LOCAL, Caller, Token, home_of, is_hash_of, token_id_of, within
from foliot.store.store import Store

REMEMBERED_SECONDS = 2.0
REMEMBERED_MAX = 10_000
# Wrong tokens of one address: so many at once, and one more every so many seconds.
WRONG_BURST, WRONG_PER_SECOND = 20.0, 0.5
REQUEST_ID_GIVEN = re.compile(r"[\x21-\x7e]{1,128}")
NAMESPACE_HEADER = "foliot-namespace"
NAMESPACE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
# What a job has written is data, never a page; and nobody else's page may hold it.
HEADERS = (
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
WRONG = "this token is not valid: it is wrong, expired or revoked"


class Authentication:
    def __init__(
        self, app: ASGIApp, *, store: Store, audit: AuditLog | None, config: Config, clock: Clock, is_open: bool
    ) -> None:
        self._app = app
        self._tokens = Tokens(store=store, clock=clock)
        self._audit = audit
        self._clock = clock
        self._is_open = is_open
        self._proxies = TrustedProxies(config.trusted_proxies)
        self._wrong = RateLimit(clock=clock, per_second=WRONG_PER_SECOND, burst=WRONG_BURST)
        rate = config.requests_per_second
        self._rate = RateLimit(clock=clock, per_second=rate, burst=2 * rate) if rate else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # Only HTTP is served. Other protocols must not bypass authentication.
            return
        # Of a header that is there more than once, the first counts, where that is allowed at all.
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        given = headers.get("x-request-id", "")
        scope[REQUEST_ID] = request_id = given if given and REQUEST_ID_GIVEN.fullmatch(given) else str(new_id())
        scope[LOG] = self._audit
        scope[ADDRESS] = self._proxies.client_of(scope)
        token = _bearer(headers)
        send = self._watched(token, scope, _with_headers(send, request_id))
        error = await self._identify(scope, headers, token)
        if error is not None:
            request = Request(scope, receive)
            await serve(self._refuse(error, request), request, send)
            return
        await self._app(scope, receive, send)

    async def _identify(self, scope: Scope, headers: Mapping[str, str], token: str | None) -> FoliotError | None:
        """Finds the caller. What is returned is turned away at once; what is left in the scope, by routes that want to
        know who asks."""
        if len(headers) < len(scope["headers"]) and (refusal := refuse_repeated_headers(scope["headers"])) is not None:
            return refusal
        if self._is_open and (refusal := refuse_foreign_request(scope["method"], headers)) is not None:
            return refusal
        if (refusal := refuse_unsupported_body(scope["method"], headers)) is not None:
            return refusal
        try:
            caller = LOCAL if token is None and self._is_open else await self._caller(scope, token)
            if caller is not None:
                # Also whoever asks for what is not theirs is known by name.
                scope[CALLER] = caller
                if (asked := headers.get(NAMESPACE_HEADER)) is not None:
                    scope[CALLER] = _in_namespace(caller, asked)
        except TooManyRequests as error:
            return error
        except Exception as error:
            # Whatever it is: what is there for everybody, such as the state of health, is there all the same.
            scope[REFUSAL] = error
        return None

    async def _caller(self, scope: Scope, token: str | None) -> Caller | None:
        if token is None:
            return None
        address = limit_key_of(scope[ADDRESS])
        found = await self._tokens.find(token, is_known_only=self._wrong.is_spent(address))
        if found is None:
            if self._wrong.take(address) > 0:
                raise TooManyRequests(
                    "too many wrong tokens have come from this address", retry_after=math.ceil(1 / WRONG_PER_SECOND)
                )
            raise Unauthenticated(WRONG)
        if self._rate is not None and (seconds := self._rate.take(found.id)) > 0:
            raise TooManyRequests("this token has asked too often", retry_after=max(1, math.ceil(seconds)))
        return Caller(found.name, found.role, found.namespace, home_of(found.namespace), found.id)

    async def _refuse(self, error: FoliotError, request: Request) -> Response:
        answer = problem_of(error, request)
        if not isinstance(error, TooManyRequests):
            # A flood must not become a flood of entries.
            await note(request, "enter", answer.status_code, code=error.code)
        return answer

    def _watched(self, token: str | None, scope: Scope, send: Send) -> Send:
        """Ends a stream whose token is no longer valid."""
        if token is None:
            return send
        checked_at, is_over = self._clock.monotonic(), False

        async def watched(message: Message) -> None:
            nonlocal checked_at, is_over
            if is_over:
                return
            is_part = message["type"] == "http.response.body" and message.get("more_body", False)
            if is_part and self._clock.monotonic() - checked_at > REMEMBERED_SECONDS:
                checked_at = self._clock.monotonic()
                if scope.get(CALLER) is not None and await self._tokens.find(token) is None:
                    is_over, message = True, {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        return watched


class Tokens:
    """What is known about tokens, for a moment."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, Token | None]] = OrderedDict()
        self._used_at: dict[str, float] = {}
        # Those that are being looked up, once for all requests that wait for it.
        self._asking: dict[str, asyncio.Task[Token | None]] = {}

    async def find(self, text: str, *, is_known_only: bool = False) -> Token | None:
        """None for one that is not valid. `is_known_only`: the database is not asked for others than those known to be
        valid."""
        token_id = token_id_of(text)
        if token_id is None:
            return None
        now = self._clock.monotonic()
        known = self._known.get(text)
        if known is not None and now - known[0] < REMEMBERED_SECONDS:
            return known[1]
        if is_known_only and (known is None or known[1] is None):
            return None
        if text not in self._asking:
            self._asking[text] = asyncio.create_task(self._ask(text, token_id), name="find token")
        # Not cut off with whoever came first: others may wait for it, too.
        return await asyncio.shield(self._asking[text])

    async def _ask(self, text: str, token_id: str) -> Token | None:
        now = self._clock.monotonic()
        try:
            found = await self._store.access.find_token(token_id)
        finally:
            del self._asking[text]
        token = found[1] if found is not None and is_hash_of(found[0], text) and found[1].is_valid else None
        self._known[text] = (now, token)
        self._known.move_to_end(text)
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)
        if token is not None and now - self._used_at.get(token.id, -math.inf) > 60:
            self._used_at[token.id] = now
            await self._store.access.note_use([token.id])
        return token


def _in_namespace(caller: Caller, asked: str) -> Caller:
    if not NAMESPACE_NAME.fullmatch(asked):
        raise Invalid(
            "Foliot-Namespace: lower-case letters, digits, - and _ only, 63 at most", field="Foliot-Namespace"
        )
    return Caller(caller.name, caller.role, caller.scope, within(caller, asked), caller.token_id)


def _bearer(headers: Mapping[str, str]) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None if not kind else ""


def _with_headers(send: Send, request_id: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message["headers"]
            given = {name for name, _ in headers}
            headers.append((b"x-request-id", request_id.encode()))
            headers.extend(header for header in HEADERS if header[0] not in given)
        await send(message)

    return sending
