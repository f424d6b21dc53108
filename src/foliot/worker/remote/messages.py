"""Converts between the messages of the protocol and the types of the worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import msgspec

from foliot.model.checkpoint import Checkpoint, CheckpointError
from foliot.model.namespace import Namespace
from foliot.model.outcome import AttemptError, Outcome
from foliot.model.run import Cancel, Claim
from foliot.model.worker_protocol import (
    OUTCOMES_MAX,
    CheckpointShown,
    ClaimedRun,
    ProgressMade,
    RunsBefore,
    StoredOutcome,
    WorkerBeat,
    raw,
    text_of,
)
from foliot.store.logs import ProgressNote
from foliot.store.upstream_results import Before, Upstream
from foliot.store.workers import Beat

UPSTREAM, OTHERS, DISABLED = 1, 2, 4
OUTCOME_BYTES = 300
"""Of an outcome without its content."""
decode_error = msgspec.json.Decoder(AttemptError).decode
decode_progress = msgspec.json.Decoder(dict[str, object]).decode


def claim_of(run: ClaimedRun, namespace: Namespace) -> Claim:
    flags = UPSTREAM * run.has_upstream + OTHERS * run.concerns_others + DISABLED * run.is_disabled
    return Claim(
        run.run_id,
        run.token,
        run.attempt,
        run.lost,
        namespace.qualified(run.queue),
        namespace.qualified(run.task),
        text_of(run.payload),
        text_of(run.options),
        run.waited_seconds,
        flags or None,
    )


def stored(outcome: Outcome) -> StoredOutcome:
    return StoredOutcome(
        run_id=outcome.run_id,
        token=outcome.token,
        state=outcome.state,
        reason=outcome.reason,
        delay_seconds=outcome.delay_seconds,
        result=raw(outcome.result),
        error=None if outcome.error is None else decode_error(outcome.error),
        output=outcome.output or b"",
    )


def batches(outcomes: Sequence[Outcome], max_bytes: int) -> Iterator[Sequence[Outcome]]:
    """Parts that each fit into a request."""
    batch: list[Outcome] = []
    size = 0
    for one in outcomes:
        # Output grows by a third in base64. A letter takes up to four bytes.
        own = OUTCOME_BYTES + 4 * len(one.result or "") + 4 * len(one.error or "") + 2 * len(one.output or b"")
        if batch and (size + own > max_bytes or len(batch) == OUTCOMES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += own
    if batch:
        yield batch


def beat_of(answer: WorkerBeat) -> Beat:
    to_end: dict[tuple[UUID, int], Cancel | None] = {
        (one.run_id, one.token): None if one.is_lost else Cancel(one.reason, one.message, one.is_forced)
        for one in answer.end
    }
    return Beat(answer.is_renewed, to_end, answer.is_draining, frozenset(), answer.owns_unheld)


def before_of(found: RunsBefore) -> Before:
    upstream = [Upstream(one.key, one.state, text_of(one.result)) for one in found.results]
    return Before(upstream, text_of(found.signal), found.bytes)


def checkpoint_of(shown: CheckpointShown) -> Checkpoint:
    return Checkpoint(
        shown.name,
        shown.kind,
        shown.function,
        shown.is_done,
        text_of(shown.result),
        None if shown.error is None else CheckpointError(**shown.error),
        shown.due_at,
        shown.left_seconds,
        shown.child_id,
    )


def progress_of(note: ProgressNote) -> ProgressMade:
    made = msgspec.convert(decode_progress(note.progress), _Progress)
    return ProgressMade(
        run_id=note.run_id, token=note.token, attempt=made.attempt, share=made.share, message=made.message
    )


class _Progress(msgspec.Struct, frozen=True):
    attempt: int
    share: float | None = None
    message: str = ""
