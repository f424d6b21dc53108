"""`/v1/hooks`: signed messages of other systems become jobs. The signature takes the place of a token."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.body_limits import read
from foliot.api.requests.headers import header_of
from foliot.api.security.permissions import PermissionRoute, requires
from foliot.clock import Clock
from foliot.config import Config
from foliot.config.references import secret_of
from foliot.errors import ConfigurationError, NotFound
from foliot.model.namespace import DEFAULT, Namespace
from foliot.model.roles import Permission
from foliot.model.source import WEBHOOK, IncomingMessage, StoredSource
from foliot.model.webhook_signature import is_signed
from foliot.store.store import Store
from foliot.submission.admission import Admission
from foliot.submission.intake import Intake

# One answer for all of them, so that nobody learns which hooks there are.
REFUSED = "there is no such hook, or the signature or the timestamp of the message is wrong"
SIGNATURE_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")


class HookAnswer(msgspec.Struct, frozen=True):
    outcome: Literal["submitted", "repeated", "ignored", "dead"]
    run_id: UUID | None = None
    reason: str | None = None
    """Why the message can't become a job. It is kept among the dead messages of the source."""


class HookRoutes:
    def __init__(self, *, store: Store, admission: Admission, config: Config, clock: Clock) -> None:
        self._store = store
        self._config = config
        self._clock = clock
        self._intake = Intake(store=store, admission=admission)
        self.router = APIRouter(tags=["sources"], route_class=PermissionRoute)
        takes = described(200, HookAnswer, problems=(400, 404, 413, 415, 422, 429, 503))
        self.router.add_api_route("/v1/hooks/{name}", self.take_hook, methods=["POST"], openapi_extra=takes)

    @requires(Permission.NONE, reading=False)
    async def take_hook(
        self, name: str, request: Request, namespace: Annotated[str, Query(max_length=63)] = DEFAULT
    ) -> Response:
        """Takes a message for the source of this name, whose kind is `webhook`. It is signed as the Standard Webhooks
        are: `webhook-id`, `webhook-timestamp` and `webhook-signature`. A message that is sent again changes nothing.

        A message that can't become a job gets 200 too, because sending it again would not help."""
        message_id, timestamp, signatures = (header_of(request, one) or "" for one in SIGNATURE_HEADERS)
        stored = await self._find(Namespace(namespace), name)
        body = await read(request, self._config.body_max_bytes)
        if stored is None or not is_signed(
            await self._secret(stored),
            message_id=message_id,
            timestamp=timestamp,
            signatures=signatures,
            body=body,
            now_seconds=self._clock.now().timestamp(),
        ):
            raise NotFound(REFUSED)
        taken = await self._intake.take(stored, [IncomingMessage(message_id, body, {})])
        if taken.dead:
            answer = HookAnswer("dead", reason=taken.dead[0])
        elif taken.ignored:
            answer = HookAnswer("ignored")
        elif taken.submitted:
            answer = HookAnswer("submitted", run_id=taken.submitted[0].id)
        else:
            answer = HookAnswer("repeated")
        return json_response(answer)

    async def _find(self, namespace: Namespace, name: str) -> StoredSource | None:
        if "\0" in name or "\0" in namespace.name or "/" in name or "/" in namespace.name:
            return None
        stored = await self._store.sources.get_source(namespace.qualified(name))
        return stored if stored is not None and stored.source.kind == WEBHOOK and not stored.source.paused else None

    async def _secret(self, stored: StoredSource) -> str:
        try:
            return secret_of(self._config, "secret", stored.source.secret or "")
        except ConfigurationError as error:
            await self._store.sources.note_source(stored.name, error=error.detail)
            raise NotFound(REFUSED) from None
