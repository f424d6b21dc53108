"""The token that each worker belongs to. Another token can't act for it, and can't find out whether it exists.

A worker never changes hands, so an answer is remembered for ever, within bounds.
"""

from __future__ import annotations

from collections import OrderedDict
from uuid import UUID

from foliot.errors import UnknownWorker
from foliot.model.roles import Caller
from foliot.store.store import Store

REMEMBERED_MAX = 50_000
NOBODY = "-"
"""Stands for the token in local open mode, where there is none."""


def token_of(caller: Caller) -> str:
    return caller.token_id or NOBODY


class Holders:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[UUID, str] = OrderedDict()

    async def check(self, worker_id: UUID, caller: Caller) -> None:
        """Raises `UnknownWorker` unless the worker registered with the caller's token."""
        holder = self._known.get(worker_id)
        if holder is None:
            found = await self._store.workers.holder_of(worker_id)
            # A worker with database access has no token. Nobody speaks for it here.
            holder = found[0] if found is not None else None
            if holder is not None:
                self._known[worker_id] = holder
                if len(self._known) > REMEMBERED_MAX:
                    self._known.popitem(last=False)
        if holder != token_of(caller):
            raise UnknownWorker(f"there is no worker {worker_id}; register it with this token first")
