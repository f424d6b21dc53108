"""Which parts of a payload have rendered placeholders, and which jobs are refused at submission."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.errors import Invalid
from foliot.model.map import Map
from foliot.model.rendering import check_templates, render_payload, sampled
from foliot.model.templates import RENDERED_MAX, Names, Unrenderable
from foliot.model.workflow import check_payload, check_template

ONE_OFF, RECURRING = Names(has_tick=False, steps=()), Names(has_tick=True, steps=())
VALUES: dict[str, Any] = {"attempt": 1, "payload": {"q": "a&b/c", "item": "x y"}, "scheduled_for": None}


def refused(task: str, payload: dict[str, Any], asked: bool | None = None, names: Names = RECURRING) -> str:
    with pytest.raises(Invalid) as caught:
        check_templates(task, payload, asked, names)
    return caught.value.field


@pytest.mark.parametrize(
    ("task", "payload", "field"),
    [
        ("shell", {"command": "{{ nope }}"}, "payload.command"),
        ("shell", {"argv": ["echo", "{{ nope }}"]}, "payload.argv[1]"),
        ("shell", {"command": "x", "environment": {"DAY": "{{ nope }}"}}, "payload.environment.DAY"),
        ("http", {"url": "https://example.org/", "body": {"a": [{"b": "{{ nope"}]}}, "payload.body.a[0].b"),
    ],
)
def test_built_in_tasks_are_checked_text_by_text(task: str, payload: dict[str, Any], field: str) -> None:
    assert refused(task, payload) == field
    check_templates(task, payload, False, RECURRING)


def test_payloads_of_user_tasks_are_rendered_only_on_request() -> None:
    payload = {"text": "Hello {{ name }}, {{"}
    check_templates("mail", payload, None, RECURRING)
    check_templates("mail", payload, None, ONE_OFF)
    assert refused("mail", payload, True) == "payload.text"


def test_a_recurring_job_with_placeholders_must_request_rendering() -> None:
    payload = {"day": "{{ scheduled_for | date }}"}
    assert refused("report", payload) == "payload.day"
    check_templates("report", payload, True, RECURRING)
    check_templates("report", payload, False, RECURRING)
    check_templates("report", payload, None, ONE_OFF)


def test_workflows_and_maps_have_no_placeholders_of_their_own() -> None:
    assert refused("workflow", {}, True) == "templates"
    check_templates("map", {"payload": {"x": "{{ nope }}"}}, None, RECURRING)


def test_the_form_of_a_payload_is_checked_with_samples() -> None:
    check_payload("http", {"url": "{{ payload.base }}/x", "headers": {"X-Day": "{{ attempt }}"}}, names=ONE_OFF)
    check_payload("http", {"url": "https://example.org:{{ attempt }}/{{ attempt }}"}, names=ONE_OFF)
    with pytest.raises(Invalid, match="http and https"):
        check_payload("http", {"url": "ftp://{{ attempt }}/"}, names=ONE_OFF)
    with pytest.raises(Invalid, match="either `command` or `argv`"):
        check_payload("shell", {"command": "{{ attempt }}", "argv": ["x"]}, names=ONE_OFF)
    assert sampled("mail", {"a": "{{ x }}"}, None) == {"a": "{{ x }}"}


def test_values_in_a_url_are_escaped_except_at_its_beginning() -> None:
    found = render_payload("http", {"url": "https://x.org/?q={{ payload.q }}", "body": "{{ payload.q }}"}, VALUES)
    assert found == {"url": "https://x.org/?q=a%26b%2Fc", "body": "a&b/c"}
    assert render_payload("http", {"url": "{{ payload.q }}/{{ payload.q }}"}, VALUES)["url"] == "a&b/c/a%26b%2Fc"


def test_values_in_a_command_are_quoted_and_elsewhere_are_not() -> None:
    payload = {"command": "cat {{ payload.q }}", "stdin": "{{ payload.q }}", "environment": {"A": "{{ payload.item }}"}}
    assert render_payload("shell", payload, VALUES) == {
        "command": 'cat "${foliot_value_1}"',
        "stdin": "a&b/c",
        "environment": {"A": "x y", "foliot_value_1": "a&b/c"},
    }
    assert render_payload("shell", {"argv": ["cat", "{{ payload.q }}"]}, VALUES) == {"argv": ["cat", "a&b/c"]}


def test_an_item_is_data() -> None:
    payload = {"url": "https://x.org/{{ payload.q }}", "body": "{{ nope }}"}
    assert render_payload("http", payload, VALUES, skip="body")["body"] == "{{ nope }}"
    check_templates("http", payload, None, RECURRING, skip="body")


def test_an_item_without_a_field_must_be_used_by_a_placeholder() -> None:
    over = Map(items=["a", "b"])
    check_template("shell", {"command": "convert {{ payload.item }}"}, over, ())
    with pytest.raises(Invalid, match="item: there is no such field"):
        check_template("shell", {"command": "convert"}, over, ())


def test_rendered_values_are_bounded() -> None:
    text = "{{ payload.q }}" * 900
    with pytest.raises(Unrenderable, match="more than"):
        render_payload("mail", {"text": text}, {"payload": {"q": "x" * (RENDERED_MAX // 800)}})
