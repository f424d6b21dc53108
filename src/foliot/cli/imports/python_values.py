"""Evaluates the constants of a Python file without executing it: texts, numbers, lists, dates and durations."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


class UnknownValue(ValueError):
    """A value that is known only when the file runs."""


class Values:
    """Evaluates expressions, with the constants that the file has assigned to names so far."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {}

    def assign(self, name: str, node: ast.expr) -> None:
        try:
            self._names[name] = self.of(node)
        except UnknownValue:
            self._names.pop(name, None)

    def of(self, node: ast.expr) -> Any:
        try:
            return self._of(node)
        except (TypeError, ValueError, OverflowError, ZoneInfoNotFoundError) as error:
            raise UnknownValue(str(error)) from None

    def _of(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self._names:
                return self._names[name]
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return [self._of(item) for item in items]
            case ast.Dict(keys=keys, values=values) if all(key is not None for key in keys):
                return {self._of(key): self._of(value) for key, value in zip(keys, values, strict=True) if key}
            case ast.UnaryOp() | ast.BinOp():
                return self._computed(node)
            case ast.JoinedStr(values=parts):
                return "".join(self._part(part) for part in parts)
            case ast.Call():
                return self._call(node)
            case ast.Attribute(value=ast.Name(id="TriggerRule"), attr=rule):
                return rule.lower()
        raise UnknownValue(ast.unparse(node)[:80])

    def _computed(self, node: ast.UnaryOp | ast.BinOp) -> Any:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._of(operand)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._of(left) + self._of(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right) if not isinstance(self._of(left), str | list):
                return self._of(left) * self._of(right)
        raise UnknownValue(ast.unparse(node)[:80])

    def _part(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return str(self._of(value))
        raise UnknownValue(ast.unparse(node)[:80])

    def _call(self, node: ast.Call) -> Any:
        make = CALLS.get(last_name(node.func))
        if make is None or any(keyword.arg is None for keyword in node.keywords):
            raise UnknownValue(ast.unparse(node)[:80])
        keywords = {str(keyword.arg): self._of(keyword.value) for keyword in node.keywords}
        return make(*(self._of(argument) for argument in node.args), **keywords)


def last_name(node: ast.expr) -> str:
    """`BashOperator` for `operators.BashOperator`; empty for anything that is not a name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _datetime(*numbers: int, tz: Any = None, tzinfo: Any = None, **more: int) -> datetime:
    zone = tz or tzinfo
    return datetime(*numbers, **more, tzinfo=_zone(zone) if zone else UTC)  # type: ignore[misc, arg-type]


def _zone(zone: Any) -> Any:
    return ZoneInfo(zone) if isinstance(zone, str) else zone


# The functions whose values a file of constants uses. None of them has an effect.
CALLS: Mapping[str, Callable[..., Any]] = {
    "timedelta": timedelta,
    "duration": timedelta,
    "datetime": _datetime,
    "timezone": _zone,
    "ZoneInfo": _zone,
}
