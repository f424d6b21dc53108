"""`/v1/alert-silences`: times for which alerts are not sent."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import read_json
from foliot.api.requests.idempotency import answered
from foliot.api.requests.parameters import reference_of
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import Conflict, Invalid, NotFound
from foliot.model.alert_rule import Pattern
from foliot.model.ids import new_id
from foliot.model.job_request import LATEST
from foliot.model.namespace import bare
from foliot.model.roles import Permission
from foliot.model.run_request import Name
from foliot.model.text_patterns import TIME
from foliot.store.alert_rules import SILENCES_MAX, Silence
from foliot.store.store import Store


class SilenceRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(min_length=1, max_length=2000)]
    until: Annotated[datetime, Meta(tz=True, extra_json_schema=TIME)]
    rule: Name | None = None
    """Without it, all rules of the namespace are silent."""
    subject: Pattern | None = None
    """The job, task or queue. Without it, all subjects of the rule."""


class SilenceShown(msgspec.Struct, frozen=True):
    id: UUID
    rule: str | None
    subject: str | None
    reason: str
    created_at: datetime
    created_by: str
    until: datetime


class SilenceList(msgspec.Struct, frozen=True):
    items: list[SilenceShown]


decoder = msgspec.json.Decoder(SilenceRequest)
EXAMPLES = {
    "one rule": {"rule": "queue-lag", "reason": "the mail server moves", "until": "2099-01-01T00:00:00Z"},
    "everything": {"reason": "maintenance", "until": "2099-01-01T00:00:00Z"},
}


class AlertSilenceRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["alerts"], route_class=PermissionRoute)
        add, path = self.router.add_api_route, "/v1/alert-silences"
        add(path, self.list_silences, methods=["GET"], openapi_extra=described(200, SilenceList))
        creates = described(201, SilenceShown, body=SilenceRequest, examples=EXAMPLES, problems=(404, 409))
        add(path, self.create_silence, methods=["POST"], status_code=201, openapi_extra=creates)
        deletes = described(204, problems=(404, 422))
        add(f"{path}/{{reference}}", self.delete_silence, methods=["DELETE"], status_code=204, openapi_extra=deletes)

    @requires(Permission.VIEW)
    async def list_silences(self, namespace: Within) -> Response:
        """Lists the silences that have not ended, by their end."""
        found = await self._store.alert_rules.list_silences(namespace)
        return answered(SilenceList([shown(silence) for silence in found]))

    @requires(Permission.OPERATE)
    async def create_silence(self, request: Request, caller: Calling) -> Response:
        """Keeps messages back until a time. Alerts still open and resolve; an alert that is open at the end is sent
        then."""
        asked = await read_json(request, decoder, max_bytes=self._body_max_bytes)
        now = await self._store.jobs.database_now()
        if not now < asked.until < LATEST:
            raise Invalid(f"until: must be in the future and before the year {LATEST.year}", field="until")
        namespace, rules = caller.namespace, self._store.alert_rules
        if asked.subject is not None and asked.rule is None:
            raise Invalid("subject: give the rule as well", field="subject")
        rule = None if asked.rule is None else namespace.qualified(asked.rule)
        if rule is not None and await rules.get_alert_rule(rule) is None:
            raise NotFound(f"there is no alert rule {asked.rule!r}")
        made = Silence(
            new_id(),
            namespace.name,
            rule,
            asked.subject,
            asked.reason,
            now,
            caller.name,
            asked.until,
        )
        if not await rules.add_silence(
            made.id, namespace, rule=rule, subject=made.subject, reason=made.reason, by=caller.name, until=made.until
        ):
            raise Conflict(f"there are {SILENCES_MAX} silences already; delete one first")
        return answered(shown(made), 201, where="/v1/alert-silences")

    @requires(Permission.OPERATE)
    async def delete_silence(self, reference: str, namespace: Within) -> Response:
        """Ends a silence. Open alerts that were kept back are sent within a few seconds."""
        if not await self._store.alert_rules.delete_silence(reference_of(reference, "silence"), namespace):
            raise NotFound(f"there is no silence {reference!r}")
        return Response(status_code=204)


def shown(silence: Silence) -> SilenceShown:
    return SilenceShown(
        silence.id,
        None if silence.rule is None else bare(silence.rule),
        silence.subject,
        silence.reason,
        silence.created_at,
        silence.created_by,
        silence.until,
    )
