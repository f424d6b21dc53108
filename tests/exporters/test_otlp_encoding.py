"""Encoded spans, decoded with the messages of OpenTelemetry."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from foliot.exporters import otlp_encoding as otlp
from foliot.exporters.otlp_encoding import CONSUMER, HAS_REMOTE, INTERNAL, IS_REMOTE, SAMPLED
from foliot.exporters.traces import REQUEST_BYTES, in_requests
from tests.support.collector import attributes_of

IDS = (1 << 127) + 7, (1 << 63) + 5, 3


def decoded(*spans: bytes, **resource: str) -> Any:
    return ExportTraceServiceRequest.FromString(otlp.request(spans, resource))


def one(encoded: bytes) -> Span:
    (of_resource,) = decoded(encoded).resource_spans
    (span,) = of_resource.scope_spans[0].spans
    assert isinstance(span, Span)
    return span


def test_a_span_has_all_its_fields() -> None:
    details = (
        otlp.attributes({"task": "send", "attempts": 2, "missing": None})
        + otlp.passing_attribute("run", "r-1")
        + otlp.event("retry", 15, {"attempt": 1})
        + otlp.link(1 << 100, 1 << 60, {"kind": "after"})
        + otlp.error("declined")
    )
    flags = SAMPLED | HAS_REMOTE | IS_REMOTE
    span = one(otlp.span(IDS, "send", (10, 20), kind=CONSUMER, flags=flags, details=details))
    assert int.from_bytes(span.trace_id, "big") == IDS[0]
    assert int.from_bytes(span.span_id, "big") == IDS[1]
    assert int.from_bytes(span.parent_span_id, "big") == IDS[2]
    assert (span.name, span.kind, span.flags) == ("send", Span.SPAN_KIND_CONSUMER, flags)
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (10, 20)
    assert attributes_of(span) == {"task": "send", "attempts": 2, "run": "r-1"}
    (event,), (link,) = span.events, span.links
    assert (event.name, event.time_unix_nano, attributes_of(event)) == ("retry", 15, {"attempt": 1})
    assert (int.from_bytes(link.trace_id, "big"), int.from_bytes(link.span_id, "big")) == (1 << 100, 1 << 60)
    assert attributes_of(link) == {"kind": "after"}
    assert (span.status.code, span.status.message) == (2, "declined")


def test_a_span_without_a_parent_ends_no_earlier_than_it_begins() -> None:
    span = one(otlp.span((1, 2, 0), "wait", (20, 10), kind=INTERNAL, flags=SAMPLED, details=b""))
    assert span.parent_span_id == b""
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (20, 20)


@pytest.mark.parametrize(
    "value", ["", "ünd 🙂", "x" * 127, "x" * 128, "x" * 20_000, 0, 127, 128, 1 << 40, -1, -(1 << 63)]
)
def test_attributes_of_any_size(value: str | int) -> None:
    for _ in range(2):
        span = one(otlp.span(IDS, "x", (1, 2), kind=INTERNAL, flags=SAMPLED, details=otlp.attributes({"a": value})))
        assert attributes_of(span) == {"a": value}


def test_a_request_names_its_resource_and_scope() -> None:
    spans = [otlp.span((1, number, 0), "x", (1, 2), kind=INTERNAL, flags=SAMPLED, details=b"") for number in (4, 5)]
    (of_resource,) = decoded(*spans, **{"service.name": "shop"}).resource_spans
    assert attributes_of(of_resource.resource) == {"service.name": "shop"}
    (of_scope,) = of_resource.scope_spans
    assert of_scope.scope.name == "foliot"
    assert [int.from_bytes(span.span_id, "big") for span in of_scope.spans] == [4, 5]


def test_large_spans_are_sent_in_several_requests() -> None:
    spans = [bytes([number]) * (REQUEST_BYTES // 3) for number in range(7)] + [b"x" * 2 * REQUEST_BYTES]
    requests = list(in_requests(spans))
    assert [len(request) for request in requests] == [3, 3, 1, 1]
    assert [span for request in requests for span in request] == spans
    assert list(in_requests([])) == []
