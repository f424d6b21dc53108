"""The id that a worker is registered under, shared by every part that signs statements with it."""

from __future__ import annotations

from uuid import UUID


class WorkerIdentity:
    """A worker that loses its lease registers again, under a new id."""

    __slots__ = ("id", "is_registered")

    def __init__(self, worker_id: UUID | None = None) -> None:
        self.id: UUID
        """The latest id. Outcomes and output are written under it, and refused once its lease has expired."""
        self.is_registered = False
        if worker_id is not None:
            self.register(worker_id)

    @property
    def claiming_id(self) -> UUID | None:
        """The id to claim runs under. None while this worker has no lease."""
        return self.id if self.is_registered else None

    def register(self, worker_id: UUID) -> None:
        self.id = worker_id
        self.is_registered = True

    def lose_lease(self) -> None:
        self.is_registered = False
