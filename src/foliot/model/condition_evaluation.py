"""Evaluates conditions, and says in words what they came to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import msgspec

from foliot.model.expressions import (
    Call,
    Comparison,
    Constant,
    EvaluationError,
    Expression,
    Items,
    Junction,
    Node,
    Not,
    Path,
    Scope,
)

SHOWN_MAX = 5
VALUE_MAX = 80
MISSING = object()


def evaluate(expression: Expression, scope: Scope) -> bool:
    """Raises `EvaluationError` for a condition that has no value."""
    found = _value(expression.root, scope)
    if not isinstance(found, bool):
        raise EvaluationError(f"the condition is {_shown(found)}, and not true or false")
    return found


def said_of(scope: Scope) -> str:
    """The values that the condition looked at: `steps.check.result.amount is 42`."""
    shown = [f"{path} is {_shown(value)}" for path, value in list(scope.seen.items())[:SHOWN_MAX]]
    return ", ".join(shown) + (", ..." if len(scope.seen) > SHOWN_MAX else "")


def _value(node: Node, scope: Scope) -> Any:
    match node:
        case Constant():
            return node.value
        case Path():
            return _looked_up(node, scope)
        case Items():
            return [_value(one, scope) for one in node.values]
        case Not():
            return not _truth(node.operand, scope, "not")
        case Junction():
            is_or = node.word == "or"
            return (
                any(_truth(one, scope, "or") for one in node.operands)
                if is_or
                else all(_truth(one, scope, "and") for one in node.operands)
            )
        case Comparison():
            return _compared(node.operator, _value(node.left, scope), _value(node.right, scope))
        case Call():
            return _called(node, scope)
        case _:
            assert_never(node)


def _truth(node: Node, scope: Scope, word: str) -> bool:
    found = _value(node, scope)
    if not isinstance(found, bool):
        raise EvaluationError(f"{word} takes true or false, not {_shown(found)}{_of(node)}")
    return found


def _looked_up(path: Path, scope: Scope) -> Any:
    found = _find(path, scope)
    scope.seen[str(path)] = found
    return found


def _find(path: Path, scope: Scope) -> Any:
    if path.root != "steps":
        found: Any = scope.params if path.root == "params" else scope.others[path.root]
        parts = path.parts
    else:
        key, part, *rest = path.parts
        step = scope.steps.get(str(key))
        if step is None:
            raise EvaluationError(f"{path}: the step {key!r} is not known here")
        if part not in step:
            raise EvaluationError(f"{path}: the step {key!r} is {step['status']} and has no result")
        found, parts = step[str(part)], tuple(rest)
    for part in parts:
        if isinstance(part, str) and isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and str(part).isdecimal() and int(part) < len(found):
            found = found[int(part)]
        elif found is None:
            raise EvaluationError(f"{path}: the value before {part!r} is null")
        else:
            raise EvaluationError(f"{path}: there is no {part!r} in {_shown(found)}")
    return found


def _compared(operator: str, left: Any, right: Any) -> bool:
    match operator:
        case "==":
            return _equal(left, right)
        case "!=":
            return not _equal(left, right)
        case "in":
            return _contains(right, left)
        case "not in":
            return not _contains(right, left)
    if not (_are_numbers(left, right) or (isinstance(left, str) and isinstance(right, str))):
        raise EvaluationError(f"{operator} compares two numbers or two texts, not {_shown(left)} with {_shown(right)}")
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator])


def _equal(left: Any, right: Any) -> bool:
    """Python takes true for 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _contains(whole: Any, part: Any) -> bool:
    if isinstance(whole, list):
        return any(_equal(part, one) for one in whole)
    if isinstance(whole, str) and isinstance(part, str):
        return part in whole
    if isinstance(whole, Mapping) and isinstance(part, str):
        return part in whole
    raise EvaluationError(
        f"in looks for a value in a list, or for a text in a text, not for {_shown(part)} in {_shown(whole)}"
    )


def _called(call: Call, scope: Scope) -> Any:
    if call.function == "default":
        path = call.arguments[0]
        assert isinstance(path, Path)  # noqa: S101
        try:
            found = _looked_up(path, scope)
        except EvaluationError:
            found = None
        return _value(call.arguments[1], scope) if found is None else found
    values = [_value(one, scope) for one in call.arguments]
    if call.function == "length":
        (whole,) = values
        if not isinstance(whole, str | list | Mapping):
            raise EvaluationError(f"length takes a text, a list or an object, not {_shown(whole)}")
        return len(whole)
    for value in values:
        if not isinstance(value, str):
            raise EvaluationError(f"{call.function} takes texts, not {_shown(value)}")
    match call.function:
        case "startswith":
            return values[0].startswith(values[1])
        case "endswith":
            return values[0].endswith(values[1])
        case _:
            return values[0].lower()


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _of(node: Node) -> str:
    return f", the value of {node}" if isinstance(node, Path) else ""


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode("utf-8", "replace")
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 1]}…"
