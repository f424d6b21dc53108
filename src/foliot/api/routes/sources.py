"""`/v1/sources`: rules that turn messages of other systems into jobs, and the messages that could not become jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import read_json
from foliot.api.requests.etags import Version, if_match_of, tagged
from foliot.api.requests.names import stored_name
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.config import Config
from foliot.config.references import is_allowed
from foliot.errors import Conflict, Invalid, NotFound, PreconditionFailed
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.model.source import DeadMessage, IncomingMessage, Source, StoredSource, check_source
from foliot.store.hints import SOURCES_TOPIC
from foliot.store.sources import SOURCES_MAX
from foliot.store.store import Store
from foliot.submission.admission import Admission
from foliot.submission.intake import Intake

source_decoder = msgspec.json.Decoder(Source)
PAGE = 100
EXAMPLES = {
    "a stream of Redis": {
        "kind": "redis",
        "url": "env:ORDERS_URL",
        "topic": "orders",
        "filter": 'message.status == "paid"',
        "task": "send_invoice",
        "payload": {"customer_id": "{{ message.customer.id }}"},
    },
    "a webhook": {"kind": "webhook", "secret": "env:SHOP_SECRET", "task": "send_invoice"},
}


class SourceShown(msgspec.Struct, frozen=True):
    name: str
    version: int
    definition: Source
    created_at: datetime
    updated_at: datetime
    received_at: datetime | None
    failing_since: datetime | None
    error: str | None
    """Why its messages wait."""


class SourceList(msgspec.Struct, frozen=True):
    items: list[SourceShown]


class DeadMessageShown(msgspec.Struct, frozen=True):
    id: UUID
    at: datetime
    message_id: str
    reason: str
    body: str
    headers: dict[str, str]


class DeadMessageList(msgspec.Struct, frozen=True):
    items: list[DeadMessageShown]
    next: UUID | None


class Retried(msgspec.Struct, frozen=True):
    run_id: UUID | None
    """None: the message had become a job before, or the filter does not take it."""


class SourceRoutes:
    def __init__(self, *, store: Store, admission: Admission, config: Config) -> None:
        self._store = store
        self._config = config
        self._intake = Intake(store=store, admission=admission)
        self.router = router = APIRouter(tags=["sources"], route_class=PermissionRoute)
        shows = described(200, SourceShown, problems=(404, 422, 503), tagged=True)
        puts = described(
            200, SourceShown, body=Source, examples=EXAMPLES, problems=(409, 413, 415, 422, 503), matched=True
        )
        add = router.add_api_route
        add("/v1/sources", self.list_sources, methods=["GET"], openapi_extra=described(200, SourceList))
        add("/v1/sources/{name}", self.get_source, methods=["GET"], openapi_extra=shows)
        add("/v1/sources/{name}", self.put_source, methods=["PUT"], openapi_extra=puts)
        add(
            "/v1/sources/{name}", self.delete_source, methods=["DELETE"], status_code=204,
            openapi_extra=described(204, problems=(404, 422, 503)),
        )  # fmt: skip
        dead = "/v1/sources/{name}/dead-messages"
        lists = described(200, DeadMessageList, problems=(404, 422, 503))
        add(dead, self.list_dead_messages, methods=["GET"], openapi_extra=lists)
        retries = described(200, Retried, problems=(404, 422, 429, 503))
        add(f"{dead}/{{reference}}/retry", self.retry_dead_message, methods=["POST"], openapi_extra=retries)
        add(
            f"{dead}/{{reference}}", self.delete_dead_message, methods=["DELETE"], status_code=204,
            openapi_extra=described(204, problems=(404, 422, 503)),
        )  # fmt: skip

    @requires(Permission.VIEW)
    async def list_sources(self, namespace: Within) -> Response:
        """Lists all sources by name."""
        found = await self._store.sources.list_sources(namespace)
        return json_response(SourceList([shown(stored) for stored in found]))

    @requires(Permission.VIEW)
    async def get_source(self, name: str, request: Request, namespace: Within) -> Response:
        """Shows a source, and whether its messages arrive."""
        stored = await self._find(namespace, name)
        return tagged(request, shown(stored), version_of(stored))

    @requires(Permission.ADMINISTER)
    async def put_source(self, name: str, request: Request, namespace: Within) -> Response:
        """Creates a source or changes it. Its URL or secret is not part of it: `url` and `secret` say where it is. With
        If-Match, only the matching version is changed; otherwise the answer is 412."""
        source = await read_json(request, source_decoder, max_bytes=self._config.body_max_bytes)
        qualified = stored_name(namespace, name)
        check_source(source)
        for field, reference in (("url", source.url), ("secret", source.secret)):
            if reference is not None and not is_allowed(self._config, reference):
                raise Invalid(
                    f"{field}: {reference} is not among the secret_references of this server; an administrator can "
                    "add it there",
                    field=field,
                )
        before = None
        if (if_match := if_match_of(request)) is not None:
            before = await self._store.sources.get_source(qualified)
            if_match.check(f"source {name!r}", None if before is None else version_of(before))
        stored = await self._store.sources.put_source(qualified, source, only=before)
        if stored is None and before is not None:
            raise PreconditionFailed(f"the source {name!r} was changed or deleted at the same time; GET it again")
        if stored is None:
            raise Conflict(f"there are {SOURCES_MAX} sources already; delete one first")
        self._store.hints.send([SOURCES_TOPIC])
        return tagged(request, shown(stored), version_of(stored))

    @requires(Permission.ADMINISTER)
    async def delete_source(self, name: str, namespace: Within) -> Response:
        """Deletes a source with its dead messages. Its topic stays as it is."""
        await self._store.sources.delete_source((await self._find(namespace, name)).name)
        self._store.hints.send([SOURCES_TOPIC])
        return Response(status_code=204)

    @requires(Permission.VIEW)
    async def list_dead_messages(
        self, name: str, namespace: Within, after: Annotated[str | None, Query(max_length=36)] = None
    ) -> Response:
        """Lists messages that could not become jobs, the newest first, each with the reason."""
        stored = await self._find(namespace, name)
        before = None if after is None else _id(after, "after")
        found = await self._store.sources.list_dead_messages(stored.name, before=before, limit=PAGE)
        items = [shown_dead(message) for message in found]
        return json_response(DeadMessageList(items, items[-1].id if len(items) == PAGE else None))

    @requires(Permission.OPERATE)
    async def retry_dead_message(self, name: str, reference: str, namespace: Within) -> Response:
        """Tries again to make a job of a dead message, by the rules of the source as they are now. If it succeeds, the
        dead message is deleted; otherwise the answer is 422 with the reason."""
        stored = await self._find(namespace, name)
        dead = await self._find_dead(stored, reference)
        message = IncomingMessage(dead.message_id, dead.body, dead.headers)
        taken = await self._intake.take(stored, [message])
        if taken.dead:
            raise Invalid(f"message: {taken.dead[0]}", field="message")
        await self._store.sources.delete_dead_message(stored.name, dead.id)
        return json_response(Retried(taken.submitted[0].id if taken.submitted else None))

    @requires(Permission.OPERATE)
    async def delete_dead_message(self, name: str, reference: str, namespace: Within) -> Response:
        """Deletes a dead message."""
        stored = await self._find(namespace, name)
        dead = await self._find_dead(stored, reference)
        await self._store.sources.delete_dead_message(stored.name, dead.id)
        return Response(status_code=204)

    async def _find(self, namespace: Namespace, name: str) -> StoredSource:
        found = None if "\0" in name else await self._store.sources.get_source(namespace.qualified(name))
        if found is None:
            raise NotFound(f"there is no source {name!r}")
        return found

    async def _find_dead(self, stored: StoredSource, reference: str) -> DeadMessage:
        found = await self._store.sources.get_dead_message(stored.name, _id(reference, "id"))
        if found is None:
            raise NotFound(f"there is no dead message {reference!r}")
        return found


def version_of(stored: StoredSource) -> Version:
    return Version(stored.version, stored.created_at)


def shown(stored: StoredSource) -> SourceShown:
    return SourceShown(
        bare(stored.name), stored.version, stored.source, stored.created_at, stored.updated_at, stored.received_at,
        stored.failing_since, stored.error,
    )  # fmt: skip


def shown_dead(message: DeadMessage) -> DeadMessageShown:
    body = message.body.decode(errors="replace")
    return DeadMessageShown(message.id, message.at, message.message_id, message.reason, body, dict(message.headers))


def _id(text: str, field: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Invalid(f"{field}: {text!r} is no id", field=field) from None
