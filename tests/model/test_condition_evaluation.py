"""The values of conditions, and the explanation of each."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.model.condition_evaluation import evaluate, said_of
from foliot.model.expressions import EvaluationError, Scope, parse

STEPS: dict[str, dict[str, Any]] = {
    "check": {
        "status": "completed",
        "result": {"amount": 42, "rows": [1, "b"], "note": None, "ok": True, "big": 2**70},
    },
    "left": {"status": "skipped"},
    "text": {"status": "completed", "result": "Hello"},
}
PARAMS = {"region": "eu", "limit": 10.5, "flags": {"fast": False}}


def scope() -> Scope:
    return Scope(STEPS, PARAMS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("steps.check.result.amount > 41", True),
        ("steps.check.result.amount >= 42 and steps.check.result.amount <= 42", True),
        ("steps.check.result.amount < params.limit", False),
        ("steps.check.result.big > 1e20", True),
        ("steps.check.result.note == null", True),
        ("steps.check.result.rows[1] == 'b'", True),
        ("steps.check.result.rows.0 == 1", True),
        ("1 in steps.check.result.rows and 'c' not in steps.check.result.rows", True),
        ("true in steps.check.result.rows", False),
        ("steps.check.result.ok", True),
        ("steps.check.result.ok == 1", False),
        ("not params.flags.fast", True),
        ("'fast' in params.flags", True),
        ("'ell' in steps.text.result", True),
        ("startswith(steps.text.result, 'He') and endswith(steps.text.result, 'lo')", True),
        ("lower(steps.text.result) == 'hello'", True),
        ("length(steps.check.result.rows) == 2 and length(params.region) == 2", True),
        ("steps.left.status == 'skipped'", True),
        ("default(steps.left.result.amount, 0) == 0", True),
        ("default(steps.check.result.note, 'none') == 'none'", True),
        ("default(steps.check.result.amount, 0) == 42", True),
        ("params.region == 'eu' or steps.left.result.x == 1", True),
        ("params.region == 'us' and steps.left.result.x == 1", False),
        ("params.region < 'uk'", True),
        ("[1, 2] == [1, 2.0]", True),
        ("'1' == 1", False),
        ("not (params.region in ['us', 'uk'])", True),
    ],
)
def test_values(text: str, value: bool) -> None:
    assert evaluate(parse(text), scope()) is value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("steps.check.result.amuont > 1", "steps.check.result.amuont: there is no 'amuont' in {"),
        ("steps.check.result.note.x == 1", "the value before 'x' is null"),
        ("steps.check.result.rows[7] == 1", 'there is no 7 in [1,"b"]'),
        ("steps.left.result.x == 1", "the step 'left' is skipped and has no result"),
        ("steps.check.result.amount > 'a'", '> compares two numbers or two texts, not 42 with "a"'),
        ("steps.check.result.ok > 0", "> compares two numbers or two texts, not true with 0"),
        ("params.region", 'the condition is "eu", and not true or false'),
        ("params.region and true", 'and takes true or false, not "eu", the value of params.region'),
        ("not params.limit", "not takes true or false, not 10.5"),
        ("1 in params.region", "in looks for a value in a list"),
        ("1 in 5", "in looks for a value in a list"),
        ("startswith(params.limit, 'x')", "startswith takes texts, not 10.5"),
        ("length(params.limit) == 1", "length takes a text, a list or an object, not 10.5"),
    ],
)
def test_a_condition_without_a_value_has_a_reason(text: str, why: str) -> None:
    with pytest.raises(EvaluationError) as refused:
        evaluate(parse(text), scope())
    assert why in str(refused.value)


def test_the_explanation_shows_the_values_that_were_used() -> None:
    seen = scope()
    evaluate(parse("params.region == 'us' or steps.check.result.amount > 100 or steps.left.status == 'x'"), seen)
    assert said_of(seen) == 'params.region is "eu", steps.check.result.amount is 42, steps.left.status is "skipped"'


def test_long_values_are_cropped() -> None:
    seen = Scope({}, {"text": "x" * 1000})
    evaluate(parse("params.text == 'a'"), seen)
    assert len(said_of(seen)) < 120
