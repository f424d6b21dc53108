"""From a message to a job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from foliot.model.source import IncomingMessage, Source, Unusable, job_of


def source(**fields: Any) -> Source:
    return Source(**({"kind": "redis", "url": "env:URL", "topic": "orders", "task": "invoice"} | fields))


def message(body: Any, **headers: str) -> IncomingMessage:
    return IncomingMessage("m1", msgspec.json.encode(body), headers)


def payload_of(rule: Source, body: Any, **headers: str) -> Any:
    found = job_of(rule, message(body, **headers))
    assert found is not None
    return found[1].payload


def test_a_message_is_the_payload_if_the_source_says_nothing_else() -> None:
    found = job_of(source(), message({"a": [1, None]}))
    assert found is not None
    key, job = found
    assert (key, job.task, job.payload) == ("m1", "invoice", {"a": [1, None]})


def test_values_keep_their_type_where_they_are_the_whole_text() -> None:
    rule = source(
        payload={
            "whole": "{{ message.items }}",
            "text": "{{ message.items[0] }} and {{ headers.origin }}",
            "filtered": '{{ message.missing | default "none" }}',
            "deep": [{"id": "{{ message_id }}"}],
            "constant": 3,
        }
    )
    assert payload_of(rule, {"items": [1, 2]}, origin="shop") == {
        "whole": [1, 2],
        "text": "1 and shop",
        "filtered": "none",
        "deep": [{"id": "m1"}],
        "constant": 3,
    }


def test_values_are_not_code_in_commands_and_urls() -> None:
    evil = '"; rm -rf / #'
    shell = payload_of(source(task="shell", payload={"command": "echo {{ message.x }}"}), {"x": evil})
    assert "rm -rf" not in shell["command"]
    assert evil in shell["environment"].values()
    url = payload_of(source(task="http", payload={"url": "https://example.org/{{ message.x }}"}), {"x": "../a?b=c"})
    assert url["url"] == "https://example.org/..%2Fa%3Fb%3Dc"


def test_placeholders_in_a_message_stay_text() -> None:
    rule = source(task="http", payload={"url": "https://example.org", "body": "{{ message.x }}"})
    found = job_of(rule, message({"x": "{{ run_id }}"}))
    assert found is not None
    assert found[1].payload is not None
    assert found[1].payload["body"] == "{{ run_id }}"
    assert found[1].templates is False


def test_the_filter_and_the_key_look_at_the_message() -> None:
    rule = source(filter='message.total > 100 and headers.origin == "shop"', key="order-{{ message.id }}")
    assert job_of(rule, message({"total": 50, "id": 1}, origin="shop")) is None
    found = job_of(rule, message({"total": 500, "id": 1}, origin="shop"))
    assert found is not None
    assert found[0] == "order-1"


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        (source(), b"no json"),
        (source(), b"[]"),
        (source(), b"{" * 100_000),
        (source(), b'{"x": "' + b"x" * 1_100_000 + b'"}'),
        (source(filter="message.total > 1"), b"{}"),
        (source(filter="message.total > 1"), b'{"total": "2"}'),
        (source(payload={"a": "{{ message.a }}"}), b"{}"),
        (source(payload={"a": "{{ message.a.b }} "}), b'{"a": 1}'),
        (source(key="{{ message.a }}"), b'{"a": ""}'),
        (source(key="{{ message.a }}"), b'{"a": "\\u001d"}'),
        (source(key="{{ message.a }}"), b'{"a": "' + b"x" * 600 + b'"}'),
    ],
)
def test_a_message_that_can_not_become_a_job_is_unusable(rule: Source, body: bytes) -> None:
    with pytest.raises(Unusable) as unusable:
        job_of(rule, IncomingMessage("m1", body, {}))
    assert str(unusable.value)


def test_a_message_without_an_id_needs_a_key() -> None:
    with pytest.raises(Unusable, match="no id"):
        job_of(source(), IncomingMessage(None, b"{}", {}))
    assert job_of(source(key="{{ message.id }}"), IncomingMessage(None, b'{"id": 1}', {})) is not None
