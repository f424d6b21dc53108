"""The runs that this worker has taken and whose end it has not yet seen committed.

A run is held from the moment its claim arrives until PostgreSQL has confirmed that its outcome is stored. The task
itself may have returned long before that: its outcome waits for the next batch, travels with one, or is sent again. The
claimer finds claims whose answer got lost by asking for the runs that the worker owns but does not hold. A run that
left this list early would therefore start a second time under the same token.

Only the worker's event loop changes the list. The heartbeat thread reads a copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from foliot.model.run import Claim

Key = tuple[UUID, int]
"""Run and token. A run that was lost here can be claimed here again, under a new token, before the worker has noticed
the loss."""


class Holdings:
    def __init__(self) -> None:
        self._keys: set[Key] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def take(self, claims: Iterable[Claim]) -> None:
        self._keys.update([(claim.run_id, claim.token) for claim in claims])

    def settle(self, keys: Iterable[Key]) -> None:
        """PostgreSQL has confirmed the end of these attempts, or has refused it because they are no longer ours."""
        self._keys.difference_update(keys)

    def clear(self) -> None:
        """The lease is gone, and with it every claim."""
        self._keys.clear()

    def keys(self) -> list[Key]:
        # The copy is one step of the interpreter, so the other thread never sees the set change under it.
        return list(self._keys.copy())
