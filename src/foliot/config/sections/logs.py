"""Settings of Foliot's own logs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from foliot.config.sections.execution import ExecutionSettings


class LogsSettings(ExecutionSettings, frozen=True, kw_only=True):
    log_format: Annotated[
        Literal["auto", "text", "json"], Meta(description="auto: text on a terminal, JSON elsewhere.")
    ] = "auto"
    echo_output: Annotated[
        Literal["auto", "always", "never"],
        Meta(description="Whether a worker shows what tasks print. auto: on a terminal."),
    ] = "auto"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Lowest level that is logged.")
    ] = "info"
