"""`/v1/runs/cancel` and `/v1/runs/rerun`: cancels and reruns runs by the filters of `GET /v1/runs`, after a count.

A client first counts with `dry_run`, and then repeats the request with the `expected` and `until` of that answer, so
that newer runs are left alone. A request reads a bounded number of runs and changes one batch; the next request passes
`next` as `after`. A request repeated after a lost answer finds less to do: cancelled runs have ended or are ending, and
rerun ones are marked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, ClassVar, TypeVar
from uuid import UUID

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.job_selection import COUNT_MAX, IS_COUNTED
from foliot.api.openapi.operations import described
from foliot.api.openapi.patterns import INSTANT, PAYLOAD_VALUE, PLACE_FORM, STATES, UUID_FORM, optional, words
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.idempotency import answered
from foliot.api.requests.parameters import cursor_text, instant_of, states_of, words_for
from foliot.api.requests.ranges import LENGTH_RANGE, NUMBER_RANGE
from foliot.api.run_filters import FILTER_NAMES, Asked, find_runs
from foliot.api.run_views import RunListed, listed
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import Conflict, Invalid
from foliot.events import RunsCancelled, RunsSubmitted
from foliot.model.field_rules import Rule, all_of, any_of, field_is
from foliot.model.ids import new_id
from foliot.model.job_request import EARLIEST
from foliot.model.namespace import Namespace
from foliot.model.roles import Permission
from foliot.model.states import LIVE, TERMINAL, RunState
from foliot.store.hints import worker_topic
from foliot.store.run_lists import RunItem
from foliot.store.store import Store

PAGES = 10
"""The pages that a request reads at most; each reads a bounded number of rows."""
BATCH = 1000
SAMPLE = 10
# Filters that select runs: `until` alone selects none. Only runs that have ended have a reason.
FILTERS = tuple(name for name in FILTER_NAMES if name not in ("until", "parent", "reason", "not_reason"))
ENDED_FILTERS = (*FILTERS, "reason", "not_reason")
IDS_MAX = 1000

Text = Annotated[str, Meta(max_length=500)]
PayloadText = Annotated[str, Meta(max_length=500, extra_json_schema={"pattern": PAYLOAD_VALUE})]
Instant = Annotated[str, Meta(max_length=500, extra_json_schema=INSTANT)]


def selection(names: Sequence[str]) -> tuple[Rule, ...]:
    """Some runs by at least one filter that is not empty, given runs, or all runs; and the number of runs, except for
    given ones."""
    texts = [name for name in names if name != "payload"]
    is_filtered = any_of(
        *(field_is(name, {"minLength": 1}, required=True) for name in texts),
        field_is("payload", {"minItems": 1}, required=True),
    )
    is_not_filtered = all_of(
        *(field_is(name, {"maxLength": 0}) for name in texts), field_is("payload", {"maxItems": 0})
    )
    has_ids, has_no_ids = field_is("ids", {"minItems": 1}, required=True), field_is("ids", {"maxItems": 0})
    is_all, is_not_all = field_is("all", {"const": True}, required=True), field_is("all", {"const": False})
    return (
        any_of(
            all_of(is_filtered, is_not_all, has_no_ids),
            all_of(is_not_filtered, is_all, has_no_ids),
            all_of(is_not_filtered, is_not_all, has_ids),
        ),
        any_of(IS_COUNTED, has_ids),
    )


class RunGroupRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Selects runs by the filters of `GET /v1/runs`, at least one besides `until`; by `ids`; or by `all`."""

    state: Annotated[Text, Meta(extra_json_schema=words(words_for(TERMINAL)))] = ""
    not_state: Annotated[Text, Meta(extra_json_schema=STATES)] = ""
    queue: Text = ""
    not_queue: Text = ""
    task: Text = ""
    not_task: Text = ""
    job: Text = ""
    tag: Text = ""
    not_tag: Text = ""
    worker: Text = ""
    not_worker: Text = ""
    attempt: Annotated[Text, Meta(extra_json_schema=optional(NUMBER_RANGE))] = ""
    duration: Annotated[Text, Meta(extra_json_schema=optional(LENGTH_RANGE))] = ""
    priority: Annotated[Text, Meta(extra_json_schema=optional(NUMBER_RANGE))] = ""
    error: Text = ""
    not_error: Text = ""
    payload: Annotated[tuple[PayloadText, ...], Meta(max_length=10)] = ()
    text: Text = ""
    not_text: Text = ""
    since: Instant = ""
    until: Instant = ""
    ids: Annotated[
        tuple[UUID, ...], Meta(max_length=IDS_MAX, description="The ids of the runs. Cannot be combined with filters.")
    ] = ()
    all: bool = False
    dry_run: bool = False
    expected: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=COUNT_MAX,
                description="The count of the dry run, minus the runs done since. If more match, nothing changes: 409.",
            ),
        ]
        | None
    ) = None
    after: Annotated[
        Text,
        Meta(description="The `next` of the previous answer.", extra_json_schema=optional(f"{UUID_FORM}|{PLACE_FORM}")),
    ] = ""

    FILTERS: ClassVar[tuple[str, ...]] = FILTERS
    RULES: ClassVar[tuple[Rule, ...]] = selection(FILTERS)


class CancelGroupRequest(RunGroupRequest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    state: Annotated[Text, Meta(extra_json_schema=words(words_for(LIVE)))] = ""
    reason: Annotated[str, Meta(max_length=1000)] = ""
    force: bool = False
    """Ends the runs at once and ignores later writes of their workers, instead of asking the workers to stop them."""


class RerunGroupRequest(RunGroupRequest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    reason: Text = ""
    not_reason: Text = ""

    FILTERS: ClassVar[tuple[str, ...]] = ENDED_FILTERS
    RULES: ClassVar[tuple[Rule, ...]] = selection(ENDED_FILTERS)


class RunGroupAnswer(msgspec.Struct, frozen=True):
    count: int
    """The number of runs that this request changed; in a dry run, of the runs it read that would change."""
    sample: list[RunListed]
    """The first runs."""
    more: bool
    next: str | None
    """There may be more runs: repeat the request with this as `after`."""
    until: datetime
    """Runs created from then on are left alone."""
    dry_run: bool


BY_ID = {"by id": {"ids": ["0190a6f0-8d3a-7c4e-9b1f-2f6d5c3a1b00"]}}
CANCELS = {"count first": {"queue": "mail", "state": "pending", "dry_run": True}} | BY_ID
RERUNS = {"count first": {"task": "send_invoice", "state": "failed", "since": "2h", "dry_run": True}} | BY_ID
R = TypeVar("R", bound=RunGroupRequest)
cancel_decoder = msgspec.json.Decoder(CancelGroupRequest)
rerun_decoder = msgspec.json.Decoder(RerunGroupRequest)


class RunGroupRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["runs"], route_class=PermissionRoute)
        problems = (400, 409, 413, 415, 422, 503)
        cancels = described(200, RunGroupAnswer, body=CancelGroupRequest, examples=CANCELS, problems=problems)
        reruns = described(200, RunGroupAnswer, body=RerunGroupRequest, examples=RERUNS, problems=problems)
        self.router.add_api_route("/v1/runs/cancel", self.cancel_runs, methods=["POST"], openapi_extra=cancels)
        self.router.add_api_route("/v1/runs/rerun", self.rerun_runs, methods=["POST"], openapi_extra=reruns)

    @requires(Permission.OPERATE)
    async def cancel_runs(self, request: Request, namespace: Within) -> Response:
        """Cancels the matching live runs: waiting runs at once, running ones through their workers. Count with
        `dry_run` first."""
        asked = checked(await decoded(await read(request, self._body_max_bytes), cancel_decoder))
        states = states_for(asked, LIVE, "a run that has ended can't be cancelled")
        chosen, answer = await self._choose(namespace, asked, states, lambda run: True)
        if not chosen:
            return answered(answer)
        why = asked.reason or "cancelled by request"
        marked = await self._store.cancellation.mark_cancelled([run.id for run in chosen], why, is_forced=asked.force)
        self._store.hints.send(worker_topic(worker_id) for worker_id in marked.values() if worker_id is not None)
        self._store.events.emit(RunsCancelled(await self._store.cancellation.end_cancelled()))
        return answered(msgspec.structs.replace(answer, count=len(marked)))

    @requires(Permission.OPERATE)
    async def rerun_runs(self, request: Request, namespace: Within) -> Response:
        """Reruns the matching runs that have ended and were not rerun yet. Steps are left out: redrive their
        workflow. Count with `dry_run` first."""
        asked = checked(await decoded(await read(request, self._body_max_bytes), rerun_decoder))
        states = states_for(asked, TERMINAL, "only runs that have ended can be rerun")
        chosen, answer = await self._choose(
            namespace, asked, states, lambda run: run.rerun_as is None and run.parent_id is None
        )
        if not chosen:
            return answered(answer)
        # Oldest first, in the order they were due.
        made = await self._store.dead_letters.rerun_runs(
            namespace, {run.id: new_id() for run in reversed(chosen)}, is_any_state=True
        )
        self._store.hints.send({rerun.queue for rerun in made})
        self._store.events.emit(RunsSubmitted(len(made)))
        return answered(msgspec.structs.replace(answer, count=len(made)))

    async def _choose(
        self, namespace: Namespace, asked: RunGroupRequest, states: str, is_wanted: Callable[[RunItem], bool]
    ) -> tuple[list[RunItem], RunGroupAnswer]:
        """The runs to change now, none in a dry run, and the answer that counts them."""
        now = await self._store.jobs.database_now()
        until = instant_of(asked.until, "until", now=now) or now
        if asked.ids:
            return await self._choose_by_id(namespace, asked, states, until, is_wanted)
        given = {name: getattr(asked, name) for name in asked.FILTERS}
        search = Asked(**given | {"state": states, "until": until.isoformat()})
        found: list[RunItem] = []
        following: str | None = asked.after
        for _ in range(PAGES):
            page = await find_runs(self._store, namespace, search, after=following or "", limit=BATCH)
            found.extend(run for run in page.items if is_wanted(run))
            following = page.next
            if following is None or (asked.expected is not None and len(found) > asked.expected):
                break
        if asked.dry_run:
            return [], _answer(found, following, until, is_dry_run=True)
        if asked.expected is None or len(found) > asked.expected:
            raise Conflict(f"expected: more than {asked.expected} runs match now; nothing was changed. Count again")
        chosen = found[:BATCH]
        if len(found) > BATCH:
            last = chosen[-1]
            following = cursor_text(last.tick_at or EARLIEST, last.id) if asked.job else str(last.id)
        return chosen, _answer(chosen, following, until, is_dry_run=False)

    async def _choose_by_id(
        self,
        namespace: Namespace,
        asked: RunGroupRequest,
        states: str,
        until: datetime,
        is_wanted: Callable[[RunItem], bool],
    ) -> tuple[list[RunItem], RunGroupAnswer]:
        """Of the given runs, those of the namespace in a state in which they can be changed. Others are left out."""
        allowed = set(states_of(states) or ())
        found = [
            run
            for run in await self._store.run_lists.find_items(namespace, asked.ids)
            if is_wanted(run) and any(state.removesuffix("+") == run.state for state in allowed)
        ]
        answer = _answer(found, None, until, is_dry_run=asked.dry_run)
        return ([] if asked.dry_run else found), answer


def checked(asked: R) -> R:
    is_filtered = any(getattr(asked, name) for name in asked.FILTERS)
    if asked.ids and (is_filtered or asked.all):
        raise Invalid("ids: can't be combined with filters or all", field="ids")
    if asked.ids:
        return asked
    if not is_filtered and not asked.all:
        raise Invalid(f"state: select runs by ids, by a filter ({', '.join(asked.FILTERS)}), or by all", field="state")
    if is_filtered and asked.all:
        raise Invalid("all: can't be combined with filters other than until", field="all")
    if asked.expected is None and not asked.dry_run:
        raise Invalid("expected: request with dry_run first, and give its count", field="expected")
    return asked


def states_for(asked: RunGroupRequest, allowed: frozenset[RunState], why: str) -> str:
    """The requested states, or all allowed ones. Raises `Invalid` for a state that is not allowed."""
    if any(state.removesuffix("+") not in allowed for state in states_of(asked.state) or ()):
        raise Invalid(f"state: {why}", field="state")
    return asked.state or ",".join(sorted(allowed))


def _answer(runs: list[RunItem], following: str | None, until: datetime, *, is_dry_run: bool) -> RunGroupAnswer:
    sample = [listed(run) for run in runs[:SAMPLE]]
    return RunGroupAnswer(len(runs), sample, following is not None, following, until, is_dry_run)
