"""The record of every change that was asked for, and of every refusal.

An entry is stored before the answer to its request goes out, together with those of other requests at the same time; so whoever got an
answer is in the record. What was asked of a process that died before it could answer may have been done and not be there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request

from foliot.api.addresses import ADDRESS, counted_as
from foliot.api.problems import REQUEST_ID
from foliot.api.rate_limits import RateLimit
from foliot.clock import Clock
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.namespace import DEFAULT
from foliot.service import Service
from foliot.store.access import AuditEntry
from foliot.store.store import Store

if TYPE_CHECKING:
    from foliot.model.access import Caller

BATCH = 500
PATH_MAX = 500
LOG = "foliot.audit"
# Of a request: what it did stands in the record already, written together with what it wrote.
IS_NOTED = "foliot.is_noted"
# Of a request: the id of what it was about, where the path has a name that others may have as well.
TARGET = "foliot.target"
ANONYMOUS = "anonymous"
# Of those who do not say who they are, so many refusals an address are recorded, and one more a second: or they could fill the disk.
STRANGERS_BURST, STRANGERS_PER_SECOND = 100.0, 1.0


class AuditLog(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._pending: list[tuple[AuditEntry, asyncio.Future[None]]] = []
        self.strangers = RateLimit(clock=clock, per_second=STRANGERS_PER_SECOND, burst=STRANGERS_BURST)

    async def add(self, entry: AuditEntry) -> None:
        """Returns when the entry is stored. Raises what kept it from being stored."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((entry, answer))
        self.wake()
        await answer

    async def run_once(self) -> float | None:
        batch, self._pending = self._pending[:BATCH], self._pending[BATCH:]
        if not batch:
            return None
        try:
            await self._store.access.insert_audit([entry for entry, _ in batch])
        except Exception as error:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
        else:
            for _, answer in batch:
                if not answer.done():
                    answer.set_result(None)
        return 0

    async def on_stop(self) -> None:
        while self._pending:
            await self.run_once()


async def note(request: Request, action: str, status: int, *, code: str | None = None, target: str | None = None) -> None:
    """Who asked for what, and what came of it. What it was about is the last part of the path that is no verb, unless it is given."""
    entry = entry_of(request, action, status, code=code, target=target)
    if entry is not None:
        await request.scope[LOG].add(entry)


def entry_of(request: Request, action: str, status: int, *, code: str | None = None, target: str | None = None) -> AuditEntry | None:
    """None where nothing is recorded, or no more of this stranger."""
    scope = request.scope
    log: AuditLog | None = scope.get(LOG)
    if log is None:
        return None
    caller: Caller | None = scope.get("foliot.caller")
    address: str | None = scope[ADDRESS]
    if caller is None and log.strangers.take(counted_as(address)) > 0:
        return None
    return AuditEntry(
        id=new_id(),
        actor=caller.name if caller else ANONYMOUS,
        actor_namespace=caller.scope if caller and caller.token_id else None,
        token_id=caller.token_id if caller else None,
        role=caller.role if caller else None,
        namespace=caller.namespace.name if caller else DEFAULT,
        address=address,
        request_id=scope[REQUEST_ID],
        method=scope["method"],
        path=_storable(scope["path"])[:PATH_MAX],
        action=action,
        target=target or scope.get(TARGET) or next((_storable(str(value))[:PATH_MAX] for value in request.path_params.values()), None),
        status=status,
        code=code,
    )


def _storable(text: str) -> str:
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
