"""`/v1/dead-letters`: runs that failed for good, in groups or one by one, and their replay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar
from uuid import UUID

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.dead_letter_views import GROUP_SCAN_MAX, LOOK_BACK, with_bare_names
from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.openapi.patterns import INSTANT
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.pages import page_size
from foliot.api.requests.parameters import cursor_of, cursor_text, instant_of, text_of
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import Invalid
from foliot.events import RunsSubmitted
from foliot.model.field_rules import Rule, exactly_one
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Caller, Permission
from foliot.model.workflow import check_payload
from foliot.store.dead_letters import DeadFilter, DeadGroup, DeadLetter
from foliot.store.store import Store
from foliot.submission.payload_checks import PayloadChecks

SCAN_MAX = 10_000
REPLAY_MAX, REPLAY_BATCH = 10_000, 1000
FIRST_ID = UUID(int=0)

Text = Annotated[str, Meta(min_length=1, max_length=500)]


class ReplayFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: Text | None = None
    task: Text | None = None
    queue: Text | None = None
    since: Annotated[Text, Meta(extra_json_schema=INSTANT)] | None = None
    until: Annotated[Text, Meta(extra_json_schema=INSTANT)] | None = None
    dismissed: bool = False
    """Dismissed ones too."""


class ReplayRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The dead letters to run again: `ids`, or the ones that match `filter`. Replayed ones are left out, unless
    `again`."""

    ids: Annotated[list[UUID], Meta(min_length=1, max_length=REPLAY_MAX)] | None = None
    filter: ReplayFilter | None = None
    rate_per_second: (
        Annotated[float, Meta(gt=0, le=10_000, description="Spreads the runs; without it, all are due at once.")] | None
    ) = None
    payload: dict[str, Any] | None = None
    again: bool = False
    keep_checkpoints: bool = False
    """Durable functions keep their recorded steps, and continue after them."""
    canary: bool = False
    """Replays the first one alone, the latest failure. The others follow once its run has succeeded; if it ends
    otherwise, they stay dead letters."""
    dry_run: bool = False

    RULES: ClassVar[tuple[Rule, ...]] = (exactly_one("ids", "filter"),)


class Replayed(msgspec.Struct, frozen=True):
    id: UUID
    run_id: UUID | None
    """The new run; null in a dry run."""


class ReplayAnswer(msgspec.Struct, frozen=True):
    items: list[Replayed]
    count: int
    skipped: list[UUID]
    """The given ids that are no dead letter or have been replayed already."""
    more: bool
    """More dead letters match: repeat the request."""
    is_dry_run: bool
    replay_id: UUID | None = None
    """Of a replay with a canary: shows its progress, and stops it."""


class DeadLetterPage(msgspec.Struct, frozen=True):
    items: list[DeadLetter]
    next: str | None
    since: datetime


class DeadGroupPage(msgspec.Struct, frozen=True):
    items: list[DeadGroup]
    more: bool
    """Some dead letters were not read, or some groups are not shown."""
    since: datetime


replay_decoder = msgspec.json.Decoder(ReplayRequest)
REPLAYS = {
    "dry run": {"filter": {"task": "send_invoice", "since": "2h"}, "dry_run": True},
    "five per second": {"filter": {"queue": "mail"}, "rate_per_second": 5},
    "one first": {"filter": {"group": "8f14e45fceea167a5a36dedd4bea2543"}, "canary": True},
}


class DeadLetterRoutes:
    def __init__(self, *, store: Store, payloads: PayloadChecks, body_max_bytes: int) -> None:
        self._store = store
        self._payloads = payloads
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["dead letters"], route_class=PermissionRoute)
        add = self.router.add_api_route
        groups = described(200, DeadGroupPage, DeadLetterPage, problems=(422, 503))
        replays = described(200, ReplayAnswer, body=ReplayRequest, examples=REPLAYS, problems=(409, 413, 422, 503))
        add("/v1/dead-letters", self.list_dead_letters, methods=["GET"], openapi_extra=groups)
        add(
            "/v1/dead-letters/replay",
            self.replay,
            methods=["POST"],
            operation_id="replay_dead_letters",
            openapi_extra=replays,
        )

    @requires(Permission.VIEW)
    async def list_dead_letters(
        self,
        namespace: Within,
        group: str = "",
        task: str = "",
        queue: str = "",
        since: str = "",
        until: str = "",
        after: str = "",
        flat: bool = False,
        replayed: bool = False,
        dismissed: bool = False,
        limit: int = 50,
    ) -> Response:
        """Lists the failed runs of the last seven days, or since `since`, in groups of similar errors; one by one with
        `group` or `flat=1`.

        Replayed runs are left out, unless `replayed=1`, and dismissed ones, unless `dismissed=1`. The trend of a group
        counts its failures in 24 equal parts of the time.
        """
        asked = ReplayFilter(
            text_of(group, "group"),
            text_of(task, "task"),
            text_of(queue, "queue"),
            text_of(since, "since"),
            text_of(until, "until"),
            dismissed,
        )
        limit, wanted = (
            page_size(limit),
            await self._filter(namespace, asked, is_rerun_included=replayed),
        )
        before = min(cursor_of(after), (wanted.until, FIRST_ID)) if after else (wanted.until, FIRST_ID)
        if not group and not flat:
            found, is_more = await self._store.dead_letters.group_dead_letters(
                wanted, limit=limit + 1, scan=GROUP_SCAN_MAX
            )
            return _answer(
                DeadGroupPage(
                    [with_bare_names(one) for one in found[:limit]], is_more or len(found) > limit, wanted.since
                )
            )
        page = await self._store.dead_letters.list_dead_letters(wanted, before, limit=limit, scan=SCAN_MAX)
        return _answer(
            DeadLetterPage(
                [with_bare_names(one) for one in page.items],
                cursor_text(*page.following) if page.following else None,
                wanted.since,
            )
        )

    @requires(Permission.OPERATE)
    async def replay(self, request: Request, caller: Calling) -> Response:
        """Creates a new run for each dead letter. A repeated request does not replay a dead letter again.

        With `canary`, one run decides whether the others follow. The server enforces it: the decision is stored, and
        survives restarts.
        """
        namespace = caller.namespace
        asked = await decoded(await read(request, self._body_max_bytes), replay_decoder)
        if (asked.ids is None) == (asked.filter is None):
            raise Invalid("ids: give either ids or filter", field="ids")
        ids, is_more = (list(dict.fromkeys(asked.ids)), False) if asked.ids else await self._matching(namespace, asked)
        tasks: dict[UUID, str] = {}
        if ids and (asked.dry_run or asked.payload is not None):
            tasks = await self._store.dead_letters.find_dead_letters(namespace, ids, is_rerun_included=asked.again)
        if asked.payload is not None:
            for task in set(tasks.values()):
                check_payload(bare(task), asked.payload)
                await self._payloads.check(namespace, bare(task), asked.payload)
        if asked.dry_run:
            items = [Replayed(run_id, None) for run_id in ids if run_id in tasks]
        elif asked.canary and ids:
            replay_id, items = await self._make_one_first(caller, ids, asked)
            return _answer(ReplayAnswer(items, len(items), [], is_more, is_dry_run=False, replay_id=replay_id))
        else:
            items = await self._make(namespace, ids, asked)
        done = {item.id for item in items}
        skipped = [run_id for run_id in ids if run_id not in done] if asked.ids else []
        return _answer(ReplayAnswer(items, len(items), skipped, is_more, asked.dry_run))

    async def _matching(self, namespace: Namespace, asked: ReplayRequest) -> tuple[list[UUID], bool]:
        """The matching dead letters, oldest first, as many as one request replays, and whether there are more."""
        wanted = await self._filter(namespace, asked.filter or ReplayFilter(), is_rerun_included=asked.again)
        found: list[UUID] = []
        before: tuple[datetime, UUID] | None = (wanted.until, FIRST_ID)
        while before is not None and len(found) < REPLAY_MAX:
            limit = min(SCAN_MAX, REPLAY_MAX - len(found))
            page = await self._store.dead_letters.list_dead_letters(wanted, before, limit=limit, scan=SCAN_MAX)
            found.extend(letter.id for letter in page.items)
            before = page.following
        return found[::-1], before is not None

    async def _make(self, namespace: Namespace, ids: Sequence[UUID], asked: ReplayRequest) -> list[Replayed]:
        payload = None if asked.payload is None else msgspec.json.encode(asked.payload).decode()
        apart = 1 / asked.rate_per_second if asked.rate_per_second else 0.0
        items: list[Replayed] = []
        for begin in range(0, len(ids), REPLAY_BATCH):
            new_ids = {run_id: new_id() for run_id in ids[begin : begin + REPLAY_BATCH]}
            made = await self._store.dead_letters.rerun_runs(
                namespace,
                new_ids,
                is_repeated=asked.again,
                payload=payload,
                apart_seconds=apart,
                first_seconds=apart * len(items),
                keeps_checkpoints=asked.keep_checkpoints,
            )
            items.extend(Replayed(rerun.old_id, rerun.new_id) for rerun in made)
            self._store.hints.send({rerun.queue for rerun in made})
            self._store.events.emit(RunsSubmitted(len(made)))
        return items

    async def _make_one_first(
        self, caller: Caller, ids: Sequence[UUID], asked: ReplayRequest
    ) -> tuple[UUID, list[Replayed]]:
        # The latest failure comes first: it is the likeliest to show whether the cause is gone.
        ordered = list(ids) if asked.ids else list(ids)[::-1]
        replay_id, made = await self._store.replays.start_replay(
            caller.namespace,
            caller.name,
            {run_id: new_id() for run_id in ordered},
            payload=None if asked.payload is None else msgspec.json.encode(asked.payload).decode(),
            apart_seconds=1 / asked.rate_per_second if asked.rate_per_second else 0.0,
            keeps_checkpoints=asked.keep_checkpoints,
            is_repeated=asked.again,
        )
        self._store.hints.send([made.queue])
        self._store.events.emit(RunsSubmitted(1))
        return replay_id, [Replayed(made.old_id, made.new_id)]

    async def _filter(self, namespace: Namespace, asked: ReplayFilter, *, is_rerun_included: bool) -> DeadFilter:
        now = await self._store.jobs.database_now()
        since = instant_of(asked.since or "", "since", now=now) or now - LOOK_BACK
        until = instant_of(asked.until or "", "until", now=now) or now + timedelta(days=1)
        if since > until:
            raise Invalid("until: is before since", field="until")
        task = None if asked.task is None else namespace.qualified(asked.task)
        queue = None if asked.queue is None else namespace.qualified(asked.queue)
        return DeadFilter(namespace, since, until, task, queue, asked.group, is_rerun_included, asked.dismissed)


def _answer(body: object) -> Response:
    return json_response(body)
