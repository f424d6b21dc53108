"""Settings of workers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from foliot.config.sections.jobs import JobsSettings
from foliot.config.sections.types import Seconds


class WorkersSettings(JobsSettings, frozen=True, kw_only=True):
    workers: Annotated[
        int | str,
        Meta(
            description="Worker processes of `foliot up`: a number, or the least and the most, such as `2:8`. "
            "See scaling.md."
        ),
    ] = 2
    workers_shrink_seconds: Annotated[
        Seconds, Meta(description="Time that a range of `workers` must need fewer workers before some are drained.")
    ] = 180
    slots: Annotated[
        int, Meta(ge=1, le=100_000, description="Default number of attempts that a worker runs at once in a queue.")
    ] = 32
    worker_ttl_seconds: Annotated[
        Seconds, Meta(description="Time without a heartbeat after which a worker counts as dead.")
    ] = 15
    worker_beat_seconds: Annotated[Seconds, Meta(description="Time between two heartbeats of a worker.")] = 5
    reaper_seconds: Annotated[Seconds, Meta(description="Time between two checks for dead workers.")] = 2
    shard_ttl_seconds: Annotated[
        Seconds, Meta(description="Time without a renewal after which other nodes take over a scheduler node's shards.")
    ] = 9
    shard_renew_seconds: Annotated[
        Seconds, Meta(description="Time between two renewals of a scheduler node's shards.")
    ] = 3
    poll_seconds: Annotated[
        Seconds, Meta(description="Longest time between two polls for work that no hint announced.")
    ] = 1
    grace_seconds: Annotated[
        Seconds, Meta(description="Time that running attempts get to end when a worker shuts down.")
    ] = 30
