"""The runs that this worker has claimed and whose end is not yet known to be committed.

A run is held from the moment its claim arrives until PostgreSQL confirms that its outcome is stored. The task may
return long before that: its outcome waits for the next batch, is being written, or is sent again. The claimer finds
claims whose answer was lost by reading the runs that the worker owns but does not hold. A run that left this list early
would therefore start a second time under the same token.

Only the worker's event loop changes the list. The heartbeat thread reads a copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from foliot.model.run import Claim

Key = tuple[UUID, int]
"""Run and token. This worker may lose a run and claim it again, under a new token, before it notices the loss."""


class Holdings:
    def __init__(self) -> None:
        self._keys: set[Key] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def take(self, claims: Iterable[Claim]) -> None:
        self._keys.update([(claim.run_id, claim.token) for claim in claims])

    def settle(self, keys: Iterable[Key]) -> None:
        """Removes attempts whose end PostgreSQL has confirmed, or refused because their runs belong to another
        worker."""
        self._keys.difference_update(keys)

    def clear(self) -> None:
        """The lease is lost, and every claim with it."""
        self._keys.clear()

    def keys(self) -> list[Key]:
        # `copy` is atomic, so the heartbeat thread never sees the set change during iteration.
        return list(self._keys.copy())
