"""Settings of metrics: StatsD, and the series of single jobs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from foliot.config.sections.logs import LogsSettings


class StatsdSettings(LogsSettings, frozen=True, kw_only=True):
    statsd_address: Annotated[str, Meta(description="Host and port of a StatsD server. Empty: none.")] = ""
    statsd_prefix: Annotated[
        str, Meta(max_length=100, pattern=r"^[A-Za-z0-9_.-]*$(?!\n)", description="Text in front of each StatsD name.")
    ] = ""
    statsd_tags: Annotated[bool, Meta(description="Whether names of jobs and queues are DogStatsD tags.")] = False
    job_metrics_tag: Annotated[
        str, Meta(max_length=100, description="Jobs with this tag have series of their own on `/metrics`. Empty: none.")
    ] = ""
