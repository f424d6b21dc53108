"""`/v1/alert-rules`: the conditions under which alerts open."""

from __future__ import annotations

from datetime import datetime

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import read_json
from foliot.api.requests.idempotency import answered
from foliot.api.requests.names import stored_name
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import Conflict, Forbidden, Invalid, NotFound
from foliot.model.alert_rule import INSTALLATION, AlertRule, check_rule, kind_of
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.store.alert_rules import RULES_MAX, StoredRule
from foliot.store.store import Store


class AlertRuleShown(msgspec.Struct, frozen=True):
    name: str
    version: int
    created_at: datetime
    updated_at: datetime
    updated_by: str
    rule: AlertRule


class AlertRuleList(msgspec.Struct, frozen=True):
    items: list[AlertRuleShown]


decoder = msgspec.json.Decoder(AlertRule)
EXAMPLES = {
    "a success rate": {
        "condition": {"kind": "success_rate", "below": 95, "window": "15m", "each": "job"}, "scope": {"tag": "billing"},
    },
    "the lag of a queue": {"condition": {"kind": "queue_lag"}, "scope": {"queue": "mail*"}, "for": "1m"},
    "critical jobs": {"condition": {"kind": "run_failed"}, "severity": "critical", "repeat": "1h"},
}  # fmt: skip


class AlertRuleRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["alerts"], route_class=PermissionRoute)
        add, path, one = self.router.add_api_route, "/v1/alert-rules", "/v1/alert-rules/{name}"
        add(path, self.list_alert_rules, methods=["GET"], openapi_extra=described(200, AlertRuleList))
        shows = described(200, AlertRuleShown, problems=(404, 422))
        add(one, self.get_alert_rule, methods=["GET"], openapi_extra=shows)
        puts = described(200, AlertRuleShown, body=AlertRule, examples=EXAMPLES, problems=(409,))
        add(one, self.put_alert_rule, methods=["PUT"], openapi_extra=puts)
        deletes = described(204, problems=(404, 422))
        add(one, self.delete_alert_rule, methods=["DELETE"], status_code=204, openapi_extra=deletes)

    @requires(Permission.VIEW)
    async def list_alert_rules(self, namespace: Within) -> Response:
        """Lists all rules by name."""
        found = await self._store.alert_rules.list_alert_rules(namespace)
        return answered(AlertRuleList([shown(rule) for rule in found]))

    @requires(Permission.VIEW)
    async def get_alert_rule(self, name: str, namespace: Within) -> Response:
        """Shows a rule."""
        return answered(shown(await self._find(namespace, name)))

    @requires(Permission.OPERATE)
    async def put_alert_rule(self, name: str, request: Request, caller: Calling) -> Response:
        """Creates a rule, or replaces it. Its open alerts stay, and are judged by the new rule.

        Rules about the whole installation need a token for all namespaces.
        """
        rule = await read_json(request, decoder, max_bytes=self._body_max_bytes)
        stored = stored_name(caller.namespace, name)
        check_rule(rule)
        if isinstance(rule.condition, INSTALLATION) and not caller.is_everywhere:
            raise Forbidden(
                f"condition.kind: {kind_of(rule)} is about the whole installation: it needs a token for all namespaces"
            )
        await self._check_channels(caller.namespace, rule)
        found = await self._store.alert_rules.put_alert_rule(stored, rule, caller.name)
        if found is None:
            raise Conflict(f"name: there are {RULES_MAX} rules already; delete one first")
        return answered(shown(found))

    @requires(Permission.OPERATE)
    async def delete_alert_rule(self, name: str, caller: Calling) -> Response:
        """Deletes a rule. Its alerts resolve without a message."""
        stored = stored_name(caller.namespace, name)
        if not await self._store.alert_rules.delete_alert_rule(stored, caller.name):
            raise NotFound(f"there is no alert rule {name!r}")
        return Response(status_code=204)

    async def _check_channels(self, namespace: Namespace, rule: AlertRule) -> None:
        for channel in rule.channels:
            if await self._store.alert_channels.get_channel(namespace.qualified(channel)) is None:
                raise Invalid(f"channels: there is no alert channel {channel!r}; create it first", field="channels")

    async def _find(self, namespace: Namespace, name: str) -> StoredRule:
        found = await self._store.alert_rules.get_alert_rule(stored_name(namespace, name))
        if found is None:
            raise NotFound(f"there is no alert rule {name!r}")
        return found


def shown(rule: StoredRule) -> AlertRuleShown:
    return AlertRuleShown(bare(rule.name), rule.version, rule.created_at, rule.updated_at, rule.updated_by, rule.rule)
