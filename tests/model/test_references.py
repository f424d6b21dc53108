"""References to results: which belong to a step's own payload, and the errors for dangling ones."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.errors import Invalid
from foliot.model.references import check_references, with_results

INNER = {
    "steps": [{"key": "a", "task": "x", "payload": {"value": {"$result": "b"}}}],
    "params": {"n": {"$result": "a"}},
}


@pytest.mark.parametrize(
    ("task", "payload", "items", "field"),
    [
        ("x", {"rows": {"$result": "nobody"}}, None, "payload.rows"),
        ("x", {"rows": [1, {"deep": {"$result": "nobody", "path": [0]}}]}, None, "payload.rows[1].deep"),
        ("x", {"rows": {"$result": 5}}, None, "payload.rows"),
        ("x", {}, [1, {"$result": "nobody"}], "map.items[1]"),
        ("workflow", INNER | {"params": {"n": {"$result": "nobody"}}}, None, "payload.params.n"),
    ],
)
def test_a_dangling_reference_is_refused_with_its_place(task: str, payload: Any, items: Any, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_references(task, payload, items, ["a"])
    assert caught.value.field == field


def test_the_message_says_what_to_do() -> None:
    with pytest.raises(
        Invalid, match=r"refers to the result of 'extracted'.*does not come after it, did you mean 'extract'"
    ):
        check_references("x", {"rows": {"$result": "extracted"}}, None, ["extract"])
    with pytest.raises(Invalid, match="does not come after it; name it in after"):
        check_references("x", {"rows": {"$result": "extract"}}, None, [])


def test_an_object_with_more_fields_is_not_a_reference() -> None:
    payload = {"value": {"$result": "nobody", "other": 1}}
    check_references("x", payload, None, [])
    assert with_results("x", payload, lambda _: "never") == payload


@pytest.mark.parametrize("wrap", ["step", "map"])
def test_the_steps_of_a_workflow_inside_keep_their_references(wrap: str) -> None:
    task, payload = ("workflow", INNER) if wrap == "step" else ("map", {"task": "workflow", "payload": INNER})
    check_references(task, payload, None, ["a"])
    found = with_results(task, payload, lambda reference: f"result of {reference['$result']}")
    found = found if wrap == "step" else found["payload"]
    assert found == {"steps": INNER["steps"], "params": {"n": "result of a"}}
