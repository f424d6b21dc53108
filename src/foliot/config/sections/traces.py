"""Settings of traces."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from foliot.config.sections.archive import ArchiveSettings


class TracesSettings(ArchiveSettings, frozen=True, kw_only=True):
    otel_endpoint: Annotated[
        str,
        Meta(description="URL of an OpenTelemetry collector, such as `http://collector:4318`. Empty: no traces."),
    ] = ""
    otel_protocol: Annotated[
        Literal["http", "grpc"], Meta(description="OTLP over HTTP (port 4318 by default) or over gRPC (4317).")
    ] = "http"
    otel_headers: Annotated[
        str, Meta(description="Headers for the collector, such as `authorization=Bearer ...`, separated by commas.")
    ] = ""
    otel_headers_file: Annotated[str, Meta(description="File that contains `otel_headers`.")] = ""
    otel_sample_ratio: Annotated[
        float,
        Meta(ge=0, le=1, description="Share of traces that are sent. Runs that failed or were retried always are."),
    ] = 1.0
    otel_service_name: Annotated[
        str, Meta(min_length=1, max_length=100, description="The name of this installation in traces.")
    ] = "foliot"
    trace_url_template: Annotated[
        str,
        Meta(
            max_length=1000,
            description="Link from a run to its trace, such as `http://jaeger:16686/trace/{trace_id}`. Empty: none.",
        ),
    ] = ""
