"""Classifies database errors: whether the cause is temporary, and whether the statement may have been carried out.

The class decides what may be repeated. A statement that was refused for a lock, a deadlock, a full server or a
read-only node did nothing. A statement whose connection broke may have committed, so only an idempotent one may be
sent again.
"""

from __future__ import annotations

import asyncio
from enum import Enum, auto

import asyncpg


class Fault(Enum):
    CLEAN = auto()
    """Temporary, and nothing was done."""
    DOUBTFUL = auto()
    """Temporary, and the statement may have been carried out."""
    LASTING = auto()
    """Permanent: a repetition would fail too."""


_CLEAN_CODES = frozenset({
    "40001",  # serialization failure
    "40P01",  # deadlock
    "55P03",  # lock not available
    "57014",  # statement timeout: cancelled and rolled back
    "53300",  # too many connections
    "57P03",  # starting up or shutting down
    "25006",  # read-only: this node was demoted
    "25P03",  # idle in transaction for too long
})  # fmt: skip
_READ_ONLY = "25006"
_CLEAN_ERRORS = (ConnectionRefusedError, FileNotFoundError, asyncpg.TargetServerAttributeNotMatched)
_DOUBTFUL_CLASSES = ("08", "57P", "53", "58")  # connection, operator intervention, resources, system


def judge(error: BaseException) -> Fault:
    if isinstance(error, _CLEAN_ERRORS):
        return Fault.CLEAN
    if isinstance(error, asyncpg.PostgresError):
        code = error.sqlstate or ""
        if code in _CLEAN_CODES:
            return Fault.CLEAN
        return Fault.DOUBTFUL if code.startswith(_DOUBTFUL_CLASSES) else Fault.LASTING
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError | OSError | TimeoutError | EOFError):
        return Fault.DOUBTFUL
    return Fault.LASTING


def leaves_session_unusable(error: BaseException) -> bool:
    """Whether the session must be closed: the server was silent, the client lost its state, or the caller left.

    The pool would wait for the abandoned statement to end, and raise its error instead of the cancellation.
    """
    # The real class, because a task's own error may override `__class__`.
    return issubclass(type(error), (TimeoutError, asyncpg.InternalClientError, asyncio.CancelledError))


def is_read_only(error: BaseException) -> bool:
    return getattr(error, "sqlstate", None) == _READ_ONLY


def lacks_partition(error: BaseException) -> bool:
    """Whether an insert failed because its day has no partition yet."""
    return isinstance(error, asyncpg.CheckViolationError) and "no partition of relation" in str(error)
