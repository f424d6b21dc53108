"""The event of a run that failed for good: which job and which trace it belongs to."""

from __future__ import annotations

import msgspec

from foliot.events import RunFailed
from foliot.model.namespace import bare
from foliot.model.outcome import Outcome
from foliot.model.run import Claim
from foliot.model.tracing import trace_id_of


class OfJob(msgspec.Struct, frozen=True):
    job: str = ""


class Origins(msgspec.Struct, frozen=True):
    """The part of the options of a run that tells where it comes from."""

    traceparent: str | None = None
    tick: OfJob | None = None


decode_origins = msgspec.json.Decoder(Origins).decode


def failure_of(outcome: Outcome, claim: Claim) -> RunFailed:
    origins = origins_of(claim.options)
    return RunFailed(
        run_id=outcome.run_id,
        task=claim.task,
        reason=outcome.reason or "",
        error=outcome.error or "",
        queue=claim.queue,
        attempt=claim.attempt,
        job=bare(origins.tick.job) if origins.tick is not None else "",
        trace_id=trace_id_of(outcome.run_id, origins.traceparent),
    )


def origins_of(options: str | None) -> Origins:
    if options is None:
        return Origins()
    try:
        return decode_origins(options)
    except msgspec.DecodeError:
        # Somebody wrote these options past the API.
        return Origins()
