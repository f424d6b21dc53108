"""Authenticates requests before routing: assigns an id, identifies the caller, and enforces request limits.

In local open mode (`foliot up` on the loopback interface) a request that passes `local_mode` needs no token. Otherwise
it needs `Authorization: Bearer foliot_...`, or the cookie of a signed-in browser. Tokens and sessions are cached for
two seconds, so a revoked token is refused within that time everywhere, and open streams that use it end.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foliot.api.problems import REQUEST_ID, problem_of, serve
from foliot.api.requests.headers import HEADERS
from foliot.api.security.audit_log import LOG, AuditLog, note
from foliot.api.security.client_address import ADDRESS, TrustedProxies, limit_key_of
from foliot.api.security.cookies import refuse_foreign_page, session_id_in
from foliot.api.security.local_mode import refuse_foreign_request, refuse_repeated_headers, refuse_unsupported_body
from foliot.api.security.permissions import CALLER, REFUSAL
from foliot.api.security.request_rate_limit import RateLimit
from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import FoliotError, Invalid, TooManyRequests, Unauthenticated
from foliot.model.ids import new_id_text
from foliot.model.roles import LOCAL, Caller, home_of, within
from foliot.model.session import is_session_id, session_hash
from foliot.model.tokens import Token, is_hash_of, token_id_of
from foliot.store.store import Store

REMEMBERED_SECONDS = 2.0
REMEMBERED_MAX = 10_000
USE_NOTED_SECONDS = 60
# Wrong tokens from one address: this burst, and then this rate.
WRONG_BURST, WRONG_PER_SECOND = 20.0, 0.5
REQUEST_ID_GIVEN = re.compile(r"[\x21-\x7e]{1,128}")
NAMESPACE_HEADER = "foliot-namespace"
NAMESPACE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
# Output of a job is data: browsers must not show it as a page, and other sites must not embed it.
SAFETY_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
SAFETY_HEADER_NAMES = frozenset(name for name, _ in SAFETY_HEADERS)
WRONG = "this token is not valid: it is wrong, expired or revoked"
SIGNED_OUT = "this session has ended; sign in again"
# In a request's scope: the function that checks the token of a sign-in. None in local open mode, which has no sign-in.
SIGN_IN = "foliot.sign_in"
SignIn = Callable[[Scope, str], Awaitable[Caller]]


@dataclass(frozen=True, slots=True)
class Credential:
    text: str
    is_session: bool = False
    """The text is the id of a session, from the cookie."""


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
        # Of a repeated header the first one counts, if repeating it is allowed at all.
        scope[HEADERS] = headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])
        }
        given = headers.get("x-request-id", "")
        scope[REQUEST_ID] = request_id = given if given and REQUEST_ID_GIVEN.fullmatch(given) else new_id_text()
        scope[LOG] = self._audit
        scope[ADDRESS] = self._proxies.client_of(scope)
        scope[SIGN_IN] = None if self._is_open else self._sign_in
        credential = self._credential(headers)
        send = self._watched(credential, scope, _with_headers(send, request_id))
        error = await self._identify(scope, headers, credential)
        if error is not None:
            request = Request(scope, receive)
            await serve(self._refuse(error, request), request, send)
            return
        await self._app(scope, receive, send)

    def _credential(self, headers: Mapping[str, str]) -> Credential | None:
        if (token := _bearer(headers)) is not None:
            return Credential(token)
        session_id = None if self._is_open else session_id_in(headers)
        return None if session_id is None else Credential(session_id, is_session=True)

    async def _identify(
        self, scope: Scope, headers: Mapping[str, str], credential: Credential | None
    ) -> FoliotError | None:
        """Finds the caller. A returned error is sent at once; an error in the scope is raised by routes that need to
        know the caller."""
        if len(headers) < len(scope["headers"]) and (refusal := refuse_repeated_headers(scope["headers"])) is not None:
            return refusal
        if self._is_open and (refusal := refuse_foreign_request(scope["method"], headers)) is not None:
            return refusal
        if (refusal := refuse_unsupported_body(scope["method"], headers)) is not None:
            return refusal
        try:
            if credential is not None and credential.is_session:
                _refuse_foreign_page(scope["method"], headers)
            caller = LOCAL if credential is None and self._is_open else await self._caller(scope, credential)
            if caller is not None:
                # Set before the namespace is checked, so that the audit log names a caller who is refused.
                scope[CALLER] = caller
                if (asked := headers.get(NAMESPACE_HEADER)) is not None:
                    scope[CALLER] = _in_namespace(caller, asked)
        except TooManyRequests as error:
            return error
        except Exception as error:
            # Public routes, such as the health check, answer in spite of this error.
            scope[REFUSAL] = error
        return None

    async def _caller(self, scope: Scope, credential: Credential | None) -> Caller | None:
        if credential is None:
            return None
        address = limit_key_of(scope[ADDRESS])
        found = await self._tokens.find(credential, is_known_only=self._wrong.is_spent(address))
        if found is None:
            if self._wrong.take(address) > 0:
                raise TooManyRequests(
                    "too many wrong tokens have come from this address", retry_after=math.ceil(1 / WRONG_PER_SECOND)
                )
            raise Unauthenticated(SIGNED_OUT if credential.is_session else WRONG)
        if self._rate is not None and (seconds := self._rate.take(found.id)) > 0:
            raise TooManyRequests("this token has asked too often", retry_after=max(1, math.ceil(seconds)))
        return Caller(found.name, found.role, found.namespace, home_of(found.namespace), found.id)

    async def _sign_in(self, scope: Scope, token: str) -> Caller:
        """The caller that a token stands for, under the same limits as a token in a header."""
        caller = await self._caller(scope, Credential(token))
        if caller is None:
            raise Unauthenticated(WRONG)
        return caller

    async def _refuse(self, error: FoliotError, request: Request) -> Response:
        answer = problem_of(error, request)
        if not isinstance(error, TooManyRequests):
            # A flood of requests must not become a flood of audit entries.
            await note(request, "enter", answer.status_code, code=error.code)
        return answer

    def _watched(self, credential: Credential | None, scope: Scope, send: Send) -> Send:
        """Ends a stream whose token is no longer valid."""
        if credential is None:
            return send
        checked_at, is_over = self._clock.monotonic(), False

        async def watched(message: Message) -> None:
            nonlocal checked_at, is_over
            if is_over:
                return
            is_part = message["type"] == "http.response.body" and message.get("more_body", False)
            if is_part and self._clock.monotonic() - checked_at > REMEMBERED_SECONDS:
                checked_at = self._clock.monotonic()
                if scope.get(CALLER) is not None and await self._tokens.find(credential) is None:
                    is_over, message = True, {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        return watched


class Tokens:
    """Caches tokens and sessions for a short time."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: OrderedDict[Credential, tuple[float, Token | None]] = OrderedDict()
        self._used_at: dict[str, float] = {}
        # One lookup serves all requests that wait for the same credential.
        self._asking: dict[Credential, asyncio.Task[Token | None]] = {}

    async def find(self, credential: Credential, *, is_known_only: bool = False) -> Token | None:
        """None if the credential is not valid. With `is_known_only`, finds only credentials that are cached as valid,
        without asking the database."""
        is_possible = is_session_id if credential.is_session else token_id_of
        if not is_possible(credential.text):
            return None
        now = self._clock.monotonic()
        known = self._known.get(credential)
        if known is not None and now - known[0] < REMEMBERED_SECONDS:
            return known[1]
        if is_known_only and (known is None or known[1] is None):
            return None
        if credential not in self._asking:
            self._asking[credential] = asyncio.create_task(self._ask(credential), name="find token")
        # Shielded, because other requests may wait for the same lookup.
        return await asyncio.shield(self._asking[credential])

    async def _ask(self, credential: Credential) -> Token | None:
        now = self._clock.monotonic()
        try:
            token = await (self._of_session(credential) if credential.is_session else self._of_token(credential))
        finally:
            del self._asking[credential]
        self._known[credential] = (now, token)
        self._known.move_to_end(credential)
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)
        if token is not None:
            await self._note_use(credential, token, now)
        return token

    async def _of_token(self, credential: Credential) -> Token | None:
        found = await self._store.tokens.find_token(token_id_of(credential.text) or "")
        return found[1] if found is not None and is_hash_of(found[0], credential.text) and found[1].is_valid else None

    async def _of_session(self, credential: Credential) -> Token | None:
        found = await self._store.sessions.find_session(session_hash(credential.text))
        return found[0] if found is not None and found[0].is_valid else None

    async def _note_use(self, credential: Credential, token: Token, now: float) -> None:
        used = credential.text if credential.is_session else token.id
        if now - self._used_at.get(used, -math.inf) <= USE_NOTED_SECONDS:
            return
        self._used_at[used] = now
        if len(self._used_at) > REMEMBERED_MAX:
            del self._used_at[next(iter(self._used_at))]
        await self._store.tokens.note_use([token.id])
        if credential.is_session:
            await self._store.sessions.note_session_use(session_hash(credential.text))


def _in_namespace(caller: Caller, asked: str) -> Caller:
    if not NAMESPACE_NAME.fullmatch(asked):
        raise Invalid(
            "Foliot-Namespace: lower-case letters, digits, - and _ only, 63 at most", field="Foliot-Namespace"
        )
    return Caller(caller.name, caller.role, caller.scope, within(caller, asked), caller.token_id)


def _refuse_foreign_page(method: str, headers: Mapping[str, str]) -> None:
    if (refusal := refuse_foreign_page(method, headers)) is not None:
        raise refusal


def _bearer(headers: Mapping[str, str]) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None if not kind else ""


def _with_headers(send: Send, request_id: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message["headers"]
            given = SAFETY_HEADER_NAMES.intersection([name for name, _ in headers])
            headers.append((b"x-request-id", request_id.encode()))
            headers.extend([header for header in SAFETY_HEADERS if header[0] not in given] if given else SAFETY_HEADERS)
        await send(message)

    return sending
