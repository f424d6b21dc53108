"""Traces: the ids of the spans of a run, and whether its trace is sampled. Pure.

All ids follow from the run, so that a span can be the parent of others before it is sent, and a span that is sent twice
is the same span. The trace is the one that the submitter named in its `traceparent`, or else has the id of the run. The
span of a run has the second half of the run's id; the spans of its attempts and waits are computed from that and the
token of the attempt.

`traceparent` is stored among the options of a run, as a tick is: retries keep it, the steps of a workflow and the items
of a map inherit one that names the workflow's run, and a rerun begins a new trace.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, NamedTuple
from uuid import UUID

from msgspec import Meta

if TYPE_CHECKING:
    from foliot.config import Config

# Version 00, and not the ids of zeros, which the standard calls invalid.
TRACEPARENT = r"^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$(?!\n)"
Traceparent = Annotated[str, Meta(pattern=TRACEPARENT, max_length=55)]
HALF = (1 << 64) - 1
# The golden ratio: the multiples of this number lie far apart. It is odd, so none of them is 0.
STEP = 0x9E3779B97F4A7C15
_match = re.compile(TRACEPARENT).match


class RunTrace(NamedTuple):
    """The place of a run in its trace."""

    trace_id: int
    span_id: int
    parent_id: int
    """The span that submitted the run. 0: none."""
    is_sampled: bool

    @property
    def traceparent(self) -> str:
        """The context for runs that this run brings about."""
        return text_of(self.trace_id, self.span_id, is_sampled=self.is_sampled)


class TracingSettings(NamedTuple):
    """Whether this installation traces, and how much of it."""

    is_on: bool
    ratio: float

    @classmethod
    def of(cls, config: Config) -> TracingSettings:
        return cls(bool(config.otel_endpoint), config.otel_sample_ratio)

    def of_children(self, run_id: UUID, traceparent: str | None) -> str | None:
        """The context that a run passes on to the runs it consists of. None without traces, if it has none itself."""
        if traceparent is None and not self.is_on:
            return None
        return trace_of(run_id, traceparent, self.ratio).traceparent


def traceparent_in(header: str | None) -> str | None:
    """The header's value if it is valid. The standard wants others to be ignored. A later version begins like 00."""
    if header is None:
        return None
    text = header.strip().lower()
    if len(text) > 55 and text[2:3] == "-" and text[:2] not in ("00", "ff") and text[55] == "-":
        text = "00" + text[2:55]
    return text if _match(text) else None


def trace_of(run_id: UUID, traceparent: str | None, ratio: float) -> RunTrace:
    number = run_id.int
    span_id = (number & HALF) or 1
    if traceparent is None:
        return RunTrace(number, span_id, 0, is_sampled(number, ratio))
    return RunTrace(
        int(traceparent[3:35], 16), span_id, int(traceparent[36:52], 16), bool(int(traceparent[53:55], 16) & 1)
    )


def is_sampled(trace_id: int, ratio: float) -> bool:
    """Decided by the trace alone, so that all runs of a trace get the same answer."""
    # Of an id of version 7, the last 62 bits are random.
    return (trace_id * STEP & HALF) < ratio * (1 << 64)


def attempt_span(run_id: UUID, token: int) -> int:
    return ((run_id.int & HALF) ^ (2 * token * STEP & HALF)) or 1


def wait_span(run_id: UUID, token: int) -> int:
    """The span of the wait before the attempt with this token."""
    return ((run_id.int & HALF) ^ ((2 * token + 1) * STEP & HALF)) or 1


def text_of(trace_id: int, span_id: int, *, is_sampled: bool) -> str:
    return f"00-{trace_id:032x}-{span_id:016x}-{'01' if is_sampled else '00'}"


def attempt_traceparent(run_id: UUID, token: int, traceparent: str | None, ratio: float) -> str:
    trace = trace_of(run_id, traceparent, ratio)
    return text_of(trace.trace_id, attempt_span(run_id, token), is_sampled=trace.is_sampled)


def of_the_run(run_id: UUID, traceparent: str | None) -> str | None:
    """The context of an attempt, or that of a run's submitter, with the span of the run in its place."""
    return None if traceparent is None else f"{traceparent[:36]}{(run_id.int & HALF) or 1:016x}{traceparent[52:]}"


def trace_id_of(run_id: UUID, traceparent: str | None) -> str:
    return run_id.hex if traceparent is None else traceparent[3:35]


def with_traceparent(options: str | None, traceparent: str | None) -> str | None:
    """JSON text of options, with the context among them."""
    if traceparent is None:
        return options
    field = f'"traceparent":"{traceparent}"'
    return f"{{{field}}}" if options in (None, "{}") else f"{options[:-1]},{field}}}"
