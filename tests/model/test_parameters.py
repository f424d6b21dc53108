"""Parameters of workflows: accepted values, and where they are inserted."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.errors import Invalid
from foliot.model.parameters import bind, values_of
from foliot.model.workflow import Step

REGION = {"type": "string", "enum": ["eu", "us"], "default": "eu"}
AMOUNT = {"type": "integer", "minimum": 1}


def test_values_and_defaults() -> None:
    assert values_of({"region": REGION, "amount": AMOUNT}, {"amount": 5}) == {"region": "eu", "amount": 5}
    assert values_of({}, {}) == {}


@pytest.mark.parametrize(
    ("parameters", "params", "field"),
    [
        ({"region": REGION}, {"region": "mars"}, "params.region"),
        ({"region": REGION}, {"regoin": "eu"}, "params.regoin"),
        ({}, {"region": "eu"}, "params.region"),
        ({"amount": AMOUNT}, {}, "params.amount"),
        ({"amount": AMOUNT}, {"amount": "5"}, "params.amount"),
        ({"amount": AMOUNT}, {"amount": 0}, "params.amount"),
        ({"amount": AMOUNT | {"default": "x"}}, {}, "parameters.amount.default"),
        ({"amount": {"type": "int"}}, {"amount": 1}, "parameters.amount.type"),
        ({"amount": {"typ": "integer"}}, {"amount": 1}, "parameters.amount.typ"),
        ({"order": {"type": "object", "properties": {"id": {"type": "integer"}}}}, {"order": {"id": "x"}},
            "params.order.id"),
        ({"text": {"type": "string"}}, {"text": "x" * 70_000}, "params"),
        ({f"p{number}": REGION for number in range(101)}, {}, "parameters"),
    ],
)  # fmt: skip
def test_errors_name_the_field(parameters: dict[str, Any], params: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        values_of(parameters, params)
    assert refused.value.field == field
    assert refused.value.detail.startswith(field)


def test_a_payload_gets_the_value_itself() -> None:
    step = Step(
        key="a",
        task="t",
        payload={"n": {"$param": "rows", "path": [1]}, "all": [{"$param": "rows"}], "text": "{{ x }}"},
    )
    assert bind(step, {"rows": [1, {"a": 2}]}).payload == {"n": {"a": 2}, "all": [[1, {"a": 2}]], "text": "{{ x }}"}


def test_a_placeholder_becomes_quoted_text() -> None:
    step = Step(key="a", command='echo {{ params.region }} {{ params.n | default "7" }} {{ run_id }}')
    assert bind(step, {"region": 'e"u\\', "n": None}).command == (
        'echo {{ "e\\"u\\\\" }} {{ "7" | default "7" }} {{ run_id }}'
    )
    payload = Step(key="a", task="http", payload={"url": "http://h/{{ params.rows }}"})
    assert bind(payload, {"rows": [1]}).payload == {"url": 'http://h/{{ "[1]" }}'}


def test_a_step_without_parameters_stays_as_it_is() -> None:
    step = Step(key="a", task="t", payload={"a": [1, {"b": "c"}]})
    assert bind(step, {"region": "eu"}) is step


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"x": {"$param": "regoin"}}, "payload.x"),
        ({"x": [{"$param": "region", "path": ["a"]}]}, "payload.x[0]"),
        ({"x": {"$param": 1}}, "payload.x"),
        ({"x": {"$param": "region", "path": [[]]}}, "payload.x"),
        ({"x": {"$param": "region", "more": 1}}, "payload.x"),
    ],
)
def test_unknown_parameters_are_refused(payload: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        bind(Step(key="a", task="t", payload=payload), {"region": "eu"})
    assert refused.value.field == field


def test_an_unknown_parameter_in_a_placeholder_is_refused() -> None:
    for command in ("echo {{ params.regoin }}", "echo {{ params }}", "echo {{ params.note }}"):
        with pytest.raises(Invalid) as refused:
            bind(Step(key="a", command=command), {"region": "eu", "note": None})
        assert refused.value.field == "command"
