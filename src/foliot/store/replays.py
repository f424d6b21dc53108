"""Replays of dead letters that begin with one run, the canary. The others follow once it has succeeded.

Everything that a replay will do is stored when it begins: the dead letters in order, and the ids of their new runs. Any
scheduler node carries it on, and a step that is repeated finds its own runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from foliot.errors import Conflict
from foliot.model.ids import new_id, none_finished_before
from foliot.model.namespace import Namespace
from foliot.store import queries
from foliot.store.dead_letters import DeadLetters, Rerun
from foliot.store.postgres import Database, Transaction

BATCH = 1000
decode_counts = msgspec.json.Decoder(dict[str, int]).decode


@dataclass(frozen=True, slots=True)
class Replay:
    id: UUID
    fingerprint: str
    actor: str
    created_at: datetime
    state: Literal["waiting", "releasing", "done", "stopped"]
    reason: str | None
    released_at: datetime | None
    finished_at: datetime | None
    total: int
    started: int
    canary_of: UUID
    canary_id: UUID
    has_payload: bool
    apart_seconds: float
    outcomes: Mapping[str, int]
    """How its runs ended so far, by state. Empty in lists."""


class Replays:
    def __init__(self, database: Database, dead_letters: DeadLetters) -> None:
        self._database = database
        self._dead_letters = dead_letters
        self._queries = queries.load("replays")

    async def start_replay(
        self,
        namespace: Namespace,
        actor: str,
        new_ids: Mapping[UUID, UUID],
        *,
        payload: str | None,
        apart_seconds: float,
        keeps_checkpoints: bool,
        is_repeated: bool,
    ) -> tuple[UUID, Rerun]:
        """Replays the first dead letter, and stores the others. `new_ids` maps each to the id of its new run.

        Raises `Conflict` if a replay of its group is under way, or if somebody else has just replayed the first one.
        """
        replay_id, old = new_id(), list(new_ids)

        async def attempt(within: Transaction) -> Rerun:
            await within.execute(
                self._queries["start_replay"],
                id=replay_id,
                namespace=namespace.name,
                actor=actor,
                old_ids=old,
                new_ids=list(new_ids.values()),
                payload=payload,
                apart_seconds=apart_seconds,
                keeps_checkpoints=keeps_checkpoints,
                is_repeated=is_repeated,
                finished_from=none_finished_before(old[:1]),
                now=self._database.clock.sql_now(),
            )
            if await self.find_replay(namespace, replay_id, within=within) is None:
                raise Conflict("a replay of this group is under way: wait for its end, or stop it")
            made = await self._dead_letters.rerun_runs(
                namespace,
                {old[0]: new_ids[old[0]]},
                is_repeated=is_repeated,
                payload=payload,
                keeps_checkpoints=keeps_checkpoints,
                within=within,
            )
            if not made:
                raise Conflict("the first of these dead letters has just been replayed: repeat the request")
            return made[0]

        return replay_id, await self._database.in_transaction("start_replay", attempt)

    async def find_replay(
        self, namespace: Namespace, replay_id: UUID, *, within: Transaction | None = None
    ) -> Replay | None:
        row = await (within or self._database).fetch_row(
            self._queries["find_replay"], id=replay_id, namespace=namespace.name
        )
        return None if row is None else _replay(list(row))

    async def list_replays(self, namespace: Namespace, fingerprint: str | None, limit: int) -> list[Replay]:
        """The latest ones first."""
        rows = await self._database.fetch(
            self._queries["list_replays"], namespace=namespace.name, fingerprint=fingerprint, limit=limit
        )
        return [_replay(list(row)) for row in rows]

    async def stop_replay(self, namespace: Namespace, replay_id: UUID, reason: str) -> bool:
        """Returns False if it had ended, or is not there."""
        return bool(
            await self._database.execute(
                self._queries["stop_replay"],
                id=replay_id,
                namespace=namespace.name,
                reason=reason,
                now=self._database.clock.sql_now(),
            )
        )

    async def follow_replays(self) -> set[str] | None:
        """Decides on replays whose canary has ended, and starts the next batch of one. Returns the queues of its runs,
        or None if there was nothing to start."""
        await self._database.execute(self._queries["decide_replays"], now=self._database.clock.sql_now())
        return await self._database.in_transaction("follow_replays", self._start_batch)

    async def _start_batch(self, within: Transaction) -> set[str] | None:
        now = self._database.clock.sql_now()
        row = await within.fetch_row(self._queries["take_replay"], batch=BATCH, now=now)
        if row is None:
            return None
        replay_id, namespace, old_ids, new_ids, payload, apart, keeps_checkpoints, is_repeated, first = row
        made: list[Rerun] = []
        if old_ids:
            made = await self._dead_letters.rerun_runs(
                Namespace(namespace),
                dict(zip(old_ids, new_ids, strict=True)),
                is_repeated=is_repeated,
                payload=payload,
                apart_seconds=apart,
                first_seconds=first,
                keeps_checkpoints=keeps_checkpoints,
                within=within,
            )
        await within.execute(
            self._queries["note_released"], id=replay_id, released=len(old_ids), started=len(made), now=now
        )
        return {rerun.queue for rerun in made}

    async def forget_replays(self, before: datetime) -> int:
        return await self._database.execute(self._queries["forget_replays"], limit=BATCH, before=before)


def _replay(values: list[Any]) -> Replay:
    values[14] = decode_counts(values[14]) if values[14] else {}
    return Replay(*values)
