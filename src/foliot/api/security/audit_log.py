"""Records every change that is requested, and every refusal.

An entry for a request that creates something is written in the transaction that creates it: either both exist or
neither. All other entries are stored before the response is sent, in batches with those of other requests. So every
answered request is recorded exactly once. The entry of a change to an existing resource is missing if the server died
between the change and the response; such a request can be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec
from starlette.requests import Request

from foliot.api.problems import REQUEST_ID
from foliot.api.security.client_address import ADDRESS, limit_key_of
from foliot.api.security.request_rate_limit import RateLimit
from foliot.clock import Clock
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.namespace import DEFAULT
from foliot.service import Service
from foliot.store.audit_log import AuditEntry
from foliot.store.postgres import Beside, Transaction
from foliot.store.store import Store

if TYPE_CHECKING:
    from foliot.model.roles import Caller

T = TypeVar("T")
M = TypeVar("M", bound=msgspec.Struct)
BATCH = 500
PATH_MAX = 500
LOG = "foliot.audit"
# Key in the request's scope: its entry has been stored together with the change.
IS_NOTED = "foliot.is_noted"
# Key in the request's scope: the id of the target, if the path has a name that several resources may share.
TARGET = "foliot.target"
ANONYMOUS = "anonymous"
# Refusals of anonymous callers are recorded up to this burst for each address, and one more each second. Without a
# limit they could fill the disk.
ANONYMOUS_BURST, ANONYMOUS_PER_SECOND = 100.0, 1.0


class AuditLog(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._pending: list[tuple[AuditEntry, asyncio.Future[None]]] = []
        self.anonymous_limit = RateLimit(clock=clock, per_second=ANONYMOUS_PER_SECOND, burst=ANONYMOUS_BURST)

    async def add(self, entry: AuditEntry) -> None:
        """Returns once the entry is stored. Raises the error that prevented it."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((entry, answer))
        self.wake()
        await answer

    async def run_once(self) -> float | None:
        batch, self._pending = self._pending[:BATCH], self._pending[BATCH:]
        if not batch:
            return None
        try:
            await self._store.audit_log.insert_audit([entry for entry, _ in batch])
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


async def note(
    request: Request, action: str, status: int, *, code: str | None = None, target: str | None = None
) -> None:
    """Records the caller, the action and its result. Without `target`, the target is the last part of the path that is
    not a verb."""
    entry = entry_of(request, action, status, code=code, target=target)
    if entry is not None:
        await request.scope[LOG].add(entry)


class NoteWithin:
    """The audit entry of a request that creates something, stored together with what it creates.

    If it were stored afterwards, storing it could fail after the commit. The caller would get an error for a job that
    exists, and submit it again.
    """

    def __init__(self, request: Request | None, action: str, *, store: Store) -> None:
        self._request = request
        self._action = action
        self._audit_log = store.audit_log
        self._entry: AuditEntry | None = None

    def around(self, work: Callable[[Transaction], Awaitable[M]]) -> Callable[[Transaction], Awaitable[M]]:
        """Combines `work` and the entry in one transaction. If it is repeated after a lost answer, the entry stays the
        same."""

        async def noted(within: Transaction) -> M:
            made = await work(within)
            is_new = getattr(made, "created", True)
            target = getattr(made, "id", None) if is_new else None
            if (entry := self._of(201 if is_new else 200, None if target is None else str(target))) is not None:
                await self._audit_log.insert_audit_within(within, [entry])
            return made

        return noted

    async def beside(self, write: Callable[[Beside | None], Awaitable[T]]) -> T:
        """Stores the entry with the one statement that `write` sends."""
        entry = self._of(201, None)
        return await (write(None) if entry is None else self._audit_log.with_audit([entry], write))

    def committed(self) -> None:
        """Marks the request as recorded. Call it after the commit."""
        if self._request is not None and self._entry is not None:
            self._request.scope[IS_NOTED] = True

    def _of(self, status: int, target: str | None) -> AuditEntry | None:
        entry = None if self._request is None else entry_of(self._request, self._action, status, target=target)
        if entry is not None and self._entry is not None:
            entry = msgspec.structs.replace(entry, id=self._entry.id)
        self._entry = entry
        return entry


def entry_of(
    request: Request, action: str, status: int, *, code: str | None = None, target: str | None = None
) -> AuditEntry | None:
    """None for requests that are not recorded, or when this anonymous address has used up its limit."""
    scope = request.scope
    log: AuditLog | None = scope.get(LOG)
    if log is None:
        return None
    caller: Caller | None = scope.get("foliot.caller")
    address: str | None = scope[ADDRESS]
    if caller is None and log.anonymous_limit.take(limit_key_of(address)) > 0:
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
        target=target
        or scope.get(TARGET)
        or next((_storable(str(value))[:PATH_MAX] for value in request.path_params.values()), None),
        status=status,
        code=code,
    )


def _storable(text: str) -> str:
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
