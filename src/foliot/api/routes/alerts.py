"""`/v1/alerts`: open and past alerts, with the messages about them."""

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
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.idempotency import answered
from foliot.api.requests.names import stored_name
from foliot.api.requests.pages import page_size
from foliot.api.requests.parameters import id_of, reference_of
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import Conflict, Invalid, NotFound
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.store.alerts import Alert
from foliot.store.store import Store

STATES = ("pending", "open", "resolved")


class AlertShown(msgspec.Struct, frozen=True):
    id: UUID
    rule: str
    subject: str
    """The job, task or queue. Empty if the alert is about the whole scope of its rule."""
    state: str
    """pending (the condition has not held for long enough), open or resolved."""
    severity: str
    since: datetime
    opened_at: datetime | None
    resolved_at: datetime | None
    resolved_by: str | None
    """Null if the alert resolved by itself."""
    number: int
    """How many things the alert is about."""
    title: str
    summary: str
    subjects: tuple[str, ...]
    log_tail: str
    messages: int
    """How often its channels got a message."""
    told_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None


class DeliveryShown(msgspec.Struct, frozen=True):
    id: UUID
    channel: str
    event: str
    state: str
    """waiting, sent, failed, or dropped because too many messages waited for the channel."""
    created_at: datetime
    attempt: int
    finished_at: datetime | None
    error: str | None


class AlertDetails(msgspec.Struct, frozen=True):
    alert: AlertShown
    deliveries: list[DeliveryShown]


class AlertPage(msgspec.Struct, frozen=True):
    items: list[AlertShown]
    next: str | None
    """Pass it as `after` to get the next page."""


class AcknowledgeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    note: Annotated[str, Meta(min_length=1, max_length=2000)] | None = None


acknowledge_decoder = msgspec.json.Decoder(AcknowledgeRequest)
NOTES = {"with a note": {"note": "the provider is down; they are on it"}, "without": {}}


class AlertRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["alerts"], route_class=PermissionRoute)
        add, one = self.router.add_api_route, "/v1/alerts/{reference}"
        add("/v1/alerts", self.list_alerts, methods=["GET"], openapi_extra=described(200, AlertPage, problems=(422,)))
        shows = described(200, AlertDetails, problems=(404, 422))
        add(one, self.get_alert, methods=["GET"], openapi_extra=shows)
        acknowledges = described(
            200, AlertDetails, body=AcknowledgeRequest, examples=NOTES, problems=(404, 409), is_body_optional=True
        )
        add(f"{one}/acknowledge", self.acknowledge_alert, methods=["POST"], openapi_extra=acknowledges)
        resolves = described(200, AlertDetails, problems=(404, 409, 422))
        add(f"{one}/resolve", self.resolve_alert, methods=["POST"], openapi_extra=resolves)

    @requires(Permission.VIEW)
    async def list_alerts(
        self, namespace: Within, state: str = "pending,open", rule: str = "", after: str = "", limit: int = 50
    ) -> Response:
        """Lists alerts, latest first. By default those that are not resolved."""
        size = page_size(limit)
        found = await self._store.alerts.list_alerts(
            namespace,
            states_of(state),
            rule=stored_name(namespace, rule) if rule else None,
            after=id_of(after, "after") if after else None,
            limit=size + 1,
        )
        following = str(found[size - 1].id) if len(found) > size else None
        return answered(AlertPage([shown(alert) for alert in found[:size]], following))

    @requires(Permission.VIEW)
    async def get_alert(self, reference: str, namespace: Within) -> Response:
        """Shows an alert and the latest messages about it."""
        return await self._answer(await self._find(reference, namespace))

    @requires(Permission.OPERATE)
    async def acknowledge_alert(self, reference: str, request: Request, caller: Calling) -> Response:
        """Notes that somebody takes care of an open alert, which ends its repeated messages."""
        asked = await decoded(await read(request, self._body_max_bytes) or b"{}", acknowledge_decoder)
        alert = await self._find(reference, caller.namespace)
        alerts = self._store.alerts
        if not await alerts.acknowledge_alert(alert.id, caller.namespace, by=caller.name, note=asked.note):
            raise Conflict(f"the alert {reference} is {alert.state}; only an open one can be acknowledged")
        return await self._answer(await self._find(reference, caller.namespace))

    @requires(Permission.OPERATE)
    async def resolve_alert(self, reference: str, caller: Calling) -> Response:
        """Resolves an open alert within a few seconds. If its condition still holds, another alert opens."""
        alert = await self._find(reference, caller.namespace)
        if not await self._store.alerts.resolve_alert(alert.id, caller.namespace, by=caller.name):
            raise Conflict(f"the alert {reference} is {alert.state}; only an open one can be resolved")
        return await self._answer(await self._find(reference, caller.namespace))

    async def _find(self, text: str, namespace: Namespace) -> Alert:
        found = await self._store.alerts.get_alert(reference_of(text, "alert"), namespace)
        if found is None:
            raise NotFound(f"there is no alert {text!r}")
        return found

    async def _answer(self, alert: Alert) -> Response:
        deliveries = await self._store.alert_deliveries.list_deliveries(alert.id)
        return answered(
            AlertDetails(
                shown(alert),
                [
                    DeliveryShown(
                        one.id, bare(one.channel), one.event, one.state, one.created_at, one.attempt, one.finished_at,
                        one.error,
                    )
                    for one in deliveries
                ],
            )
        )  # fmt: skip


def states_of(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in STATES:
            raise Invalid(f"state: there is no state {word!r}; there are {', '.join(STATES)}", field="state")
    return words or list(STATES)


def shown(alert: Alert) -> AlertShown:
    return AlertShown(
        id=alert.id,
        rule=bare(alert.rule),
        subject=bare(alert.subject),
        state=alert.state or "",
        severity=alert.severity,
        since=alert.since,
        opened_at=alert.opened_at,
        resolved_at=alert.resolved_at,
        resolved_by=alert.resolved_by,
        number=alert.number,
        title=alert.title,
        summary=alert.summary,
        subjects=alert.subjects,
        log_tail=alert.log_tail,
        messages=alert.messages,
        told_at=alert.told_at,
        acknowledged_at=alert.acknowledged_at,
        acknowledged_by=alert.acknowledged_by,
        note=alert.note,
    )
