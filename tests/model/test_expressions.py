"""Conditions as text: the accepted forms, and the place of the error in others."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from foliot.model.condition_evaluation import evaluate
from foliot.model.expressions import DEPTH_MAX, LENGTH_MAX, EvaluationError, Expression, ExpressionError, Scope, parse
from tests.support.steps import steps_of

ODDITIES = (
    "steps", "params", ".", "[", "]", "(", ")", ",", "and", "or", "not", "in", "==", "!=", "<", ">=",
    "'", '"', "\\", " ", "1", "-2.5",
    "1e5", "true", "null", "startswith", "default", "length", "a", "check", "result", "status", "\n", "é", "&&", "{",
        "0" * 40,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "steps", "params"),
    [
        ("steps.check.result.amount > 100", ("check",), ()),
        ('steps.check.status == "failed"', ("check",), ()),
        ("params.region == 'eu'", (), ("region",)),
        ("steps.a.result.x == params.y and not (params.z or params.y)", ("a",), ("y", "z")),
        ('steps["my.step"].result["a key"][0].b-c in [1, 2, -3.5]', ("my.step",), ()),
        ("startswith(lower(steps.a.result), 'x') and length(params.rows) >= 1", ("a",), ("rows",)),
        ("default(steps.a.result.x, null) == null", ("a",), ()),
        ("params.x not in ['a', 'b',]".replace(",]", "]"), (), ("x",)),
        ("true", (), ()),
    ],
)
def test_accepted_expressions(text: str, steps: tuple[str, ...], params: tuple[str, ...]) -> None:
    found = parse(text)
    assert (found.steps, found.params) == (steps, params)


@pytest.mark.parametrize(
    ("text", "position", "why"),
    [
        ("", 1, "expected a value"),
        ("steps.check.result.amount >", 28, "expected a value"),
        ("steps.check.result.amount = 3", 27, "write =="),
        ("params.a && params.b", 10, "write and"),
        ("!params.a", 1, "write not"),
        ("check.amount > 3", 1, "there is no name 'check'"),
        ("param.region == 'eu'", 1, "did you mean 'params'"),
        ("params.region == eu", 18, "a text stands in quotes"),
        ("params.region == 'eu", 18, "the text is not closed"),
        ("params.region == True", 18, "write true instead of True"),
        ("1 < params.x < 3", 14, "compare two values at a time"),
        ("params.a params.b", 10, "expected and, or, or the end"),
        ("steps.check == 3", 1, "a step has a status and a result"),
        ("steps.check.state == 'failed'", 1, "a step has a status and a result"),
        ("steps.check.status.x == 1", 1, "a status has no parts"),
        ("steps", 1, "steps needs a name"),
        ("params", 1, "params needs a name"),
        ("lenght(params.x) > 1", 1, "did you mean 'length'"),
        ("length(params.x, 1) > 1", 1, "length takes 1 arguments, not 2"),
        ("default(1, 2) == 2", 1, "the first argument of default is a path"),
        ("params.x == (1", 15, "expected )"),
        ("params.x[1", 11, "expected ]"),
        ("params.x in [1 2]", 16, "expected ,"),
        ("params.x == {}", 13, "can't stand in a condition"),
        ("'eu'", 1, "a condition is true or false"),
        ("__import__('os')", 1, "there is no function '__import__'"),
        ("steps.a.result.__class__ == 1 or x", 34, "there is no name 'x'"),
    ],
)
def test_the_error_names_the_character(text: str, position: int, why: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        parse(text)
    assert (refused.value.position, why in refused.value.detail) == (position, True), refused.value.detail


def test_length_and_depth_are_bounded() -> None:
    parse("(" * DEPTH_MAX + "true" + ")" * DEPTH_MAX)
    for text in (
        "(" * (DEPTH_MAX + 1) + "true" + ")" * (DEPTH_MAX + 1),
        "not " * (DEPTH_MAX + 1) + "true",
        "params.x in " + "[" * (DEPTH_MAX + 1),
        "length(" * (DEPTH_MAX + 1),
    ):
        with pytest.raises(ExpressionError, match="levels deep"):
            parse(text)
    with pytest.raises(ExpressionError, match="at most"):
        parse("true or " * (LENGTH_MAX // 8) + "false")


def test_no_text_breaks_the_parser_or_takes_long() -> None:
    chance = random.Random(20261118)
    read = refused = 0
    for _ in range(20_000):
        joint = chance.choice(("", " ", "."))
        text = joint.join(chance.choices(ODDITIES, k=chance.randint(1, 14)))
        position = fault_of(text)
        if position is None:
            read += 1
            _evaluate_anyhow(parse(text))
        else:
            assert 1 <= position <= max(len(text), 1) + 1, text
            refused += 1
    assert read > 20
    assert refused > 1000


def fault_of(text: str) -> int | None:
    """The position of the error in a text; None for a condition."""
    try:
        parse(text)
    except ExpressionError as error:
        return error.position
    return None


def _evaluate_anyhow(found: Expression) -> None:
    """Evaluates an expression on values of every kind. Unexpected errors fail the test."""
    for value in (None, True, 3, "text", [1, "a"], {"a": {"check": 1}}):
        steps = {key: {"status": "completed", "result": value} for key in found.steps}
        with suppress(EvaluationError):
            assert isinstance(evaluate(found, Scope(steps, dict.fromkeys(found.params, value))), bool)


def test_the_time_grows_with_the_length_only() -> None:
    def steps(number: int) -> int:
        parse.cache_clear()
        return steps_of(lambda: parse(" or ".join(["params.x == 1"] * number)))

    assert steps(100) < 12 * steps(10)
