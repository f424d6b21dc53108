"""`/v1/dead-letters/groups/{name}`: failures of one kind, with notes of people and a way to dismiss them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.dead_letter_views import GROUP_SCAN_MAX, LOOK_BACK, with_bare_names
from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.parameters import text_of
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import Invalid, NotFound
from foliot.model.namespace import Namespace
from foliot.model.roles import Permission
from foliot.store.dead_letters import DeadFilter, DeadGroup
from foliot.store.store import Store


@dataclass(frozen=True, slots=True)
class DeadGroupDetails(DeadGroup):
    open: int
    """How many of its failures are neither replayed nor dismissed."""


class NoteRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    note: Annotated[str, Meta(max_length=2000, description="Null removes the note.")] | None


class DismissRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    until: datetime | None = None
    """Dismisses the failures up to this instant, such as the `last_at` that somebody has looked at. Defaults to now."""


note_decoder = msgspec.json.Decoder(NoteRequest)
dismiss_decoder = msgspec.json.Decoder(DismissRequest)
NOTES = {"a note": {"note": "The partner's certificate has expired. Replay after Tuesday."}, "none": {"note": None}}
DISMISSALS = {"the failures that were seen": {"until": "2026-01-01T00:00:00Z"}, "all so far": {}}


class DeadGroupRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["dead letters"], route_class=PermissionRoute)
        add = self.router.add_api_route
        path, problems = "/v1/dead-letters/groups/{name}", (404, 413, 422, 503)
        shows = described(200, DeadGroupDetails, problems=(404, 422, 503))
        notes = described(200, DeadGroupDetails, body=NoteRequest, examples=NOTES, problems=problems)
        dismissals = described(
            200, DeadGroupDetails, body=DismissRequest, examples=DISMISSALS, problems=problems, is_body_optional=True
        )
        add(path, self.get_dead_group, methods=["GET"], openapi_extra=shows)
        add(f"{path}/note", self.note_dead_group, methods=["PUT"], openapi_extra=notes)
        add(f"{path}/dismiss", self.dismiss_dead_group, methods=["POST"], openapi_extra=dismissals)
        add(f"{path}/restore", self.restore_dead_group, methods=["POST"], openapi_extra=shows)

    @requires(Permission.VIEW)
    async def get_dead_group(self, name: str, namespace: Within) -> Response:
        """Shows a group of the last seven days, with its trend, a sample and its note. Dismissed and replayed failures
        count too."""
        return json_response(await self._group(namespace, name))

    @requires(Permission.OPERATE)
    async def note_dead_group(self, name: str, request: Request, caller: Calling) -> Response:
        """Sets the note of a group, for everybody who looks at it."""
        asked = await decoded(await read(request, self._body_max_bytes), note_decoder)
        group = await self._group(caller.namespace, name)
        note = asked.note.strip() or None if asked.note else None
        if note and "\0" in note:
            raise Invalid("note: the character NUL can't be stored", field="note")
        await self._store.dead_letters.put_note(caller.namespace, group.fingerprint, note, caller.name)
        return json_response(await self._group(caller.namespace, name))

    @requires(Permission.OPERATE)
    async def dismiss_dead_group(self, name: str, request: Request, caller: Calling) -> Response:
        """Takes the failures of a group up to an instant off the list. Later ones bring the group back."""
        asked = await decoded(await read(request, self._body_max_bytes) or b"{}", dismiss_decoder)
        group = await self._group(caller.namespace, name)
        now = await self._store.jobs.database_now()
        if asked.until is not None and asked.until.tzinfo is None:
            raise Invalid("until: must have an offset, such as Z", field="until")
        until = now if asked.until is None else min(asked.until, now)
        await self._store.dead_letters.put_dismissal(caller.namespace, group.fingerprint, until, caller.name)
        return json_response(await self._group(caller.namespace, name))

    @requires(Permission.OPERATE)
    async def restore_dead_group(self, name: str, caller: Calling) -> Response:
        """Undoes a dismissal: all failures of the group are listed again."""
        group = await self._group(caller.namespace, name)
        await self._store.dead_letters.put_dismissal(caller.namespace, group.fingerprint, None, caller.name)
        return json_response(await self._group(caller.namespace, name))

    async def _group(self, namespace: Namespace, name: str) -> DeadGroupDetails:
        letters, now = self._store.dead_letters, await self._store.jobs.database_now()
        left = DeadFilter(namespace, now - LOOK_BACK, now, fingerprint=text_of(name, "name"))
        every = replace(left, is_rerun_included=True, is_dismissed_included=True)
        found, _ = await letters.group_dead_letters(every, limit=1, scan=GROUP_SCAN_MAX)
        if not found:
            raise NotFound(f"there is no group {name!r} of dead letters in the last seven days")
        still_open, _ = await letters.group_dead_letters(left, limit=1, scan=GROUP_SCAN_MAX)
        shown = with_bare_names(found[0])
        values = {field.name: getattr(shown, field.name) for field in fields(shown)}
        return DeadGroupDetails(**values, open=still_open[0].count if still_open else 0)
