"""`GET /v1/audit`: the audit log of changes and refusals."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.requests.idempotency import answered
from foliot.api.requests.pages import page_size
from foliot.api.requests.parameters import cursor_of, cursor_text, instant_of, text_of
from foliot.api.security.permissions import Calling, PermissionRoute, requires
from foliot.errors import Invalid
from foliot.model.roles import Permission
from foliot.store.audit_log import AuditFilter, AuditRecord
from foliot.store.store import Store

LOOK_BACK = timedelta(days=7)
SCAN_MAX = 10_000
FIRST_ID = UUID(int=0)


class AuditPage(msgspec.Struct, frozen=True):
    items: list[AuditRecord]
    next: str | None
    """Pass it as `after` to get the next page. A short or empty page may have a next one."""
    since: datetime


def audit_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["access"], route_class=PermissionRoute)

    @router.get("/v1/audit", openapi_extra=described(200, AuditPage, problems=(422,)))
    @requires(Permission.ADMINISTER, reading=True)
    async def list_audit(
        caller: Calling,
        actor: str = "",
        token: str = "",
        action: str = "",
        target: str = "",
        since: str = "",
        until: str = "",
        denied: bool = False,
        after: str = "",
        limit: int = 50,
    ) -> Response:
        """Lists changes and refusals of the last seven days, or since `since`, latest first; with `denied=1` only
        refusals.

        Shows your namespace, or all namespaces if your token is valid for all.
        """
        now = await store.jobs.database_now()
        begin = instant_of(since, "since", now=now) or now - LOOK_BACK
        end = instant_of(until, "until", now=now) or now + timedelta(days=1)
        if begin > end:
            raise Invalid("until: is before since", field="until")
        wanted = AuditFilter(
            begin,
            end,
            None if caller.is_everywhere else caller.scope,
            text_of(actor, "actor"),
            text_of(action, "action"),
            text_of(target, "target"),
            denied,
            text_of(token, "token"),
        )
        before = min(cursor_of(after), (end, FIRST_ID)) if after else (end, FIRST_ID)
        page = await store.audit_log.list_audit(wanted, before, limit=page_size(limit), scan=SCAN_MAX)
        return answered(AuditPage(page.items, cursor_text(*page.following) if page.following else None, begin))

    return router
