"""`/v1/tokens`: access tokens. The text of a token is shown once, when it is created."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import read_json
from foliot.api.requests.idempotency import answered
from foliot.api.security.audit_log import TARGET, NoteWithin
from foliot.api.security.permissions import Calling, PermissionRoute, requires
from foliot.errors import Conflict, Forbidden, NotFound
from foliot.model.roles import EVERYWHERE, Caller, Permission, Role
from foliot.model.run_request import Name
from foliot.model.tokens import DEFAULT_LIFE, NEVER, Token, life_of, new_token_text
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.store.tokens import NewToken
from foliot.triggers.durations import FORM

NAMESPACE_OR_ALL = r"^(\*|[a-z0-9][a-z0-9_-]*)$(?!\n)"


LIFE = {"pattern": f"^(?:{NEVER}|{FORM})$"}


class TokenRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[Name, Meta(description="Unique among the active tokens of a namespace.")]
    role: Role
    namespace: (
        Annotated[str, Meta(max_length=63, pattern=NAMESPACE_OR_ALL, description="`*`: all namespaces.")] | None
    ) = None
    """The namespace of the request by default."""
    expires_in: Annotated[
        str, Meta(max_length=100, extra_json_schema=LIFE, description="A duration such as `90d`, or `never`.")
    ] = DEFAULT_LIFE


class TokenShown(msgspec.Struct, frozen=True):
    id: str
    name: str
    role: str
    namespace: str
    status: Literal["active", "expired", "revoked"]
    created_at: datetime
    created_by: str
    """The name of the token that created it, or `local` or `database`."""
    created_by_id: str | None
    """The id of that token."""
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    """Accurate to the minute."""


class TokenCreated(TokenShown, frozen=True, kw_only=True):
    token: str
    """Keep it: it is not shown again."""


class TokenList(msgspec.Struct, frozen=True):
    items: list[TokenShown]


decoder = msgspec.json.Decoder(TokenRequest)
EXAMPLES = {
    "for a pipeline": {"name": "ci", "role": "submitter", "expires_in": "30d"},
    "for all namespaces": {"name": "prometheus", "role": "viewer", "namespace": "*", "expires_in": "never"},
}


def tokens_router(*, store: Store, body_max_bytes: int) -> APIRouter:
    router = APIRouter(tags=["access"], route_class=PermissionRoute)
    creates = described(201, TokenCreated, body=TokenRequest, examples=EXAMPLES, problems=(409,))
    revokes = described(200, TokenShown, problems=(404, 409))

    @router.get("/v1/tokens", openapi_extra=described(200, TokenList))
    @requires(Permission.ADMINISTER, reading=True)
    async def list_tokens(caller: Calling) -> Response:
        """Lists the tokens of this namespace, or every token if yours is valid for all namespaces. The texts of tokens
        are not shown."""
        found = await store.tokens.list_tokens(None if caller.is_everywhere else caller.scope)
        return answered(TokenList([shown(token) for token in found]))

    @router.post("/v1/tokens", status_code=201, openapi_extra=creates)
    @requires(Permission.ADMINISTER)
    async def create_token(request: Request, caller: Calling) -> Response:
        """Creates a token. Only this answer shows its text: the database keeps a hash."""
        asked = await read_json(request, decoder, max_bytes=body_max_bytes)
        namespace = asked.namespace or caller.namespace.name
        check_reach(caller, namespace)
        text, token_id, digest = new_token_text()
        new = NewToken(
            token_id, digest, asked.name, asked.role, namespace, caller.name, caller.token_id, life_of(asked.expires_in)
        )
        note = NoteWithin(request, "create_token", store=store)

        async def work(within: Transaction) -> TokenCreated:
            made = await store.tokens.insert_token(new, within=within)
            if made is None:
                raise Conflict(
                    f"name: a token named {asked.name!r} already exists; revoke it first, or choose another name"
                )
            return TokenCreated(**msgspec.structs.asdict(shown(made)), token=text)

        made = await store.database.in_transaction("create_token", note.around(work))
        note.committed()
        return answered(made, 201, where="/v1/tokens")

    @router.delete("/v1/tokens/{reference}", openapi_extra=revokes)
    @requires(Permission.ADMINISTER)
    async def revoke_token(reference: str, request: Request, caller: Calling) -> Response:
        """Revokes a token by id or name. All servers refuse it within a few seconds.

        A name that the tokens of several namespaces share is refused with 409 if the caller may revoke more than one of
        them: give the id.
        """
        within = None if caller.is_everywhere else caller.scope
        token = the_one(reference, [] if "\0" in reference else await store.tokens.find_tokens_named(reference, within))
        request.scope[TARGET] = token.id
        revoked = await store.tokens.revoke_token(token.id)
        return answered(shown(revoked or token))

    return router


def the_one(reference: str, found: Sequence[Token]) -> Token:
    """The token with that id or name. Raises `NotFound`, or `Conflict` when several have the name."""
    if not found:
        raise NotFound(f"there is no token {reference!r}")
    if len(found) > 1 and found[0].id != reference:
        named = ", ".join(f"{token.id} in {token.namespace}" for token in found)
        raise Conflict(f"several tokens are named {reference!r}; give the id of one of them: {named}")
    return found[0]


def check_reach(caller: Caller, namespace: str) -> None:
    """Raises `Forbidden` for a namespace that the caller's own token does not cover."""
    if not caller.is_everywhere and namespace != caller.scope:
        reach = "all namespaces" if namespace == EVERYWHERE else f"the namespace {namespace!r}"
        raise Forbidden(f"namespace: a token for {caller.scope!r} can't create one for {reach}")


def shown(token: Token) -> TokenShown:
    return TokenShown(
        id=token.id,
        name=token.name,
        role=token.role,
        namespace=token.namespace,
        status="revoked" if token.revoked_at else "active" if token.is_valid else "expired",
        created_at=token.created_at,
        created_by=token.created_by,
        created_by_id=token.created_by_id,
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
        last_used_at=token.used_at,
    )
