"""`/v1/session`: signs a browser in and out, and tells it who it is. `/v1/namespaces`: where it may go."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot import __version__
from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import read_json
from foliot.api.requests.idempotency import answered
from foliot.api.security.audit_log import TARGET
from foliot.api.security.authentication import SIGN_IN, SignIn
from foliot.api.security.cookies import cookie_cleared, cookie_with, session_id_in, sign_in_refusal
from foliot.api.security.permissions import CALLER, REFUSAL, Calling, PermissionRoute, requires
from foliot.errors import PlainHttp, Unauthenticated
from foliot.model.namespace import DEFAULT
from foliot.model.roles import ALLOWED, Caller, Permission
from foliot.model.session import is_session_id, new_session_id, session_hash
from foliot.model.tokens import TOKEN_FORM
from foliot.store.store import Store


class SignInRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    token: Annotated[str, Meta(max_length=200, pattern=TOKEN_FORM, description="The text of a token.")]


class SessionShown(msgspec.Struct, frozen=True, kw_only=True):
    mode: Literal["open", "token"]
    """open: `foliot up` on the loopback interface, where nobody signs in. token: every request needs a token or a
    session."""
    version: str
    now: datetime
    """The clock of the database."""
    is_signed_in: bool
    name: str | None = None
    role: str | None = None
    scope: str | None = None
    """The namespace of the token, or `*` for all."""
    namespace: str | None = None
    """The namespace of this request."""
    permissions: list[str] = []
    ends_at: datetime | None = None
    """When the session ends, if it is used until then. An unused session ends after 12 hours."""
    sign_in_refusal: str | None = None
    """Why signing in is impossible over this connection."""


class NamespaceItem(msgspec.Struct, frozen=True):
    name: str


class NamespaceList(msgspec.Struct, frozen=True):
    items: list[NamespaceItem]


decoder = msgspec.json.Decoder(SignInRequest)
# A well-formed token that no server ever issued.
EXAMPLE = "foliot_0123456789abcdef_" + "0123456789abcdef" * 4 + "_6a22b550"
EXAMPLES = {"with a token": {"token": EXAMPLE}}


class SessionRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["access"], route_class=PermissionRoute)
        add, path = self.router.add_api_route, "/v1/session"
        signs_in = described(201, SessionShown, body=SignInRequest, examples=EXAMPLES)
        add(path, self.create_session, methods=["POST"], status_code=201, openapi_extra=signs_in)
        add(path, self.get_session, methods=["GET"], openapi_extra=described(200, SessionShown))
        add(path, self.delete_session, methods=["DELETE"], status_code=204, openapi_extra=described(204))
        add("/v1/namespaces", self.list_namespaces, methods=["GET"], openapi_extra=described(200, NamespaceList))

    @requires(Permission.NONE, reading=False)
    async def create_session(self, request: Request) -> Response:
        """Signs a browser in with a token, and sets the cookie `__Host-foliot`.

        The session ends after 12 hours without a request, after 7 days, or within two seconds of the token's end. Where
        no token is needed, nothing is checked or stored. Over plain HTTP the answer is 403, except on this machine.
        With the cookie, a change must come from a page of this server and send the header `Foliot-CSRF: 1`.
        """
        asked = await read_json(request, decoder, max_bytes=self._body_max_bytes)
        refusal = request.scope.get(REFUSAL)
        # The browser may still have the cookie of a session that has ended.
        if refusal is not None and not isinstance(refusal, Unauthenticated):
            raise refusal
        sign_in: SignIn | None = request.scope[SIGN_IN]
        if sign_in is None:
            return answered(await self._shown(request, request.scope[CALLER]), 201)
        if (reason := sign_in_refusal(request.scope, request.headers)) is not None:
            raise PlainHttp(reason)
        caller = request.scope[CALLER] = await sign_in(request.scope, asked.token)
        assert caller.token_id is not None  # noqa: S101
        request.scope[TARGET] = caller.token_id
        session_id = new_session_id()
        await self._store.sessions.insert_session(session_hash(session_id), caller.token_id)
        answer = answered(await self._shown(request, caller, session_id), 201)
        answer.headers["Set-Cookie"] = cookie_with(session_id)
        return answer

    @requires(Permission.NONE)
    async def get_session(self, request: Request) -> Response:
        """Shows the caller with its role and permissions, or that nobody is signed in."""
        session_id, refusal = session_id_in(request.headers), request.scope.get(REFUSAL)
        is_over = isinstance(refusal, Unauthenticated) and session_id is not None
        if refusal is not None and not is_over:
            raise refusal
        answer = answered(await self._shown(request, request.scope.get(CALLER), session_id))
        if is_over:
            answer.headers["Set-Cookie"] = cookie_cleared()
        return answer

    @requires(Permission.VIEW, reading=False)
    async def delete_session(self, request: Request) -> Response:
        """Signs the browser out: ends its session and removes the cookie. Other sessions of the token continue."""
        session_id = session_id_in(request.headers)
        if session_id is not None and is_session_id(session_id):
            await self._store.sessions.delete_session(session_hash(session_id))
        return Response(status_code=204, headers={"Set-Cookie": cookie_cleared()})

    @requires(Permission.VIEW)
    async def list_namespaces(self, caller: Calling) -> Response:
        """Lists the namespaces that the caller can use: the token's own, or all known ones."""
        names = [caller.scope]
        if caller.is_everywhere:
            names = sorted({DEFAULT, caller.namespace.name, *await self._store.sessions.list_namespaces()})
        return answered(NamespaceList([NamespaceItem(name) for name in names]))

    async def _shown(self, request: Request, caller: Caller | None, session_id: str | None = None) -> SessionShown:
        is_open = request.scope[SIGN_IN] is None
        about = SessionShown(
            mode="open" if is_open else "token",
            version=__version__,
            now=await self._store.jobs.database_now(),
            is_signed_in=caller is not None,
            sign_in_refusal=None if is_open else sign_in_refusal(request.scope, request.headers),
        )
        if caller is None:
            return about
        return msgspec.structs.replace(
            about,
            name=caller.name,
            role=caller.role,
            scope=caller.scope,
            namespace=caller.namespace.name,
            permissions=sorted(ALLOWED[caller.role] - {Permission.NONE}),
            ends_at=await self._end_of(session_id),
        )

    async def _end_of(self, session_id: str | None) -> datetime | None:
        if session_id is None or not is_session_id(session_id):
            return None
        found = await self._store.sessions.find_session(session_hash(session_id))
        return found[1] if found is not None and found[0].is_valid else None
