"""Cancels runs."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from foliot.events import RunsCancelled
from foliot.store.hints import worker_topic
from foliot.store.store import Store


class CancelRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=1000)] = ""
    force: bool = False
    """Ends the run at once and ignores later writes of its worker, instead of asking the worker to stop it."""


cancel_decoder = msgspec.json.Decoder(CancelRequest)
CANCELS = {"gracefully": {"reason": "wrong customer"}, "at once": {"force": True}}


async def cancel(store: Store, run_id: UUID, message: str, *, is_forced: bool) -> None:
    marked = await store.cancellation.mark_cancelled([run_id], message, is_forced=is_forced)
    if marked:
        store.hints.send(worker_topic(worker_id) for worker_id in marked.values() if worker_id is not None)
        store.events.emit(RunsCancelled(await store.cancellation.end_cancelled()))
