"""Settings of jobs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from foliot.config.sections.api import ApiSettings
from foliot.config.sections.types import Seconds


class JobsSettings(ApiSettings, frozen=True, kw_only=True):
    retries: Annotated[int, Meta(ge=0, le=1000, description="Default number of retries of a job.")] = 3
    timeout_seconds: Annotated[Seconds, Meta(description="Default timeout of an attempt.")] = 3600
    aging_seconds: Annotated[
        Seconds,
        Meta(description="A waiting run gains one level of priority in this time. Very large: strict priority."),
    ] = 300
    lost_attempts_max: Annotated[
        int, Meta(ge=1, le=100, description="Workers that a run may lose before it fails.")
    ] = 3
    result_max_bytes: Annotated[int, Meta(ge=0, le=67_108_864, description="Largest result of a job, as JSON.")] = (
        262_144
    )
    output_max_bytes: Annotated[
        int, Meta(ge=0, le=67_108_864, description="Output kept of an attempt: half from its start, half from its end.")
    ] = 65_536
    retention_days: Annotated[int, Meta(ge=1, le=36_500, description="Days to keep finished runs.")] = 30
