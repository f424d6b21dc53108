"""Accepts integers written as 509.0 or 5e2, which JSON Schema treats as integers.

The decoder refuses them and cannot be configured otherwise. So a body that it refuses is parsed a second time: wherever
its type has an integer and the body a number without a fraction, the number becomes an integer. Nothing else changes;
numbers in a payload stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import inspect

Change = Callable[[Any], Any]
# Above this, a float cannot represent every integer.
EXACT_MAX = 2.0**53


def with_whole_numbers(body: bytes, kind: Any) -> bytes | None:
    """The body with such numbers replaced; None if it contains none."""
    tree = msgspec.json.decode(body)
    changed = _change_of(kind)(tree)
    return None if changed is tree else msgspec.json.encode(changed)


@lru_cache(maxsize=256)
def _change_of(kind: Any) -> Change:
    return _changing(inspect.type_info(kind), {})


def _changing(kind: inspect.Type, seen: dict[type, list[Change]]) -> Change:
    """The function that converts the integers in a value of this type; `_same` if the type contains none."""
    if isinstance(kind, inspect.Metadata):
        return _changing(kind.type, seen)
    if isinstance(kind, inspect.IntType):
        return _whole
    if isinstance(kind, inspect.ListType | inspect.VarTupleType | inspect.SetType | inspect.FrozenSetType):
        return _each(_changing(kind.item_type, seen))
    if isinstance(kind, inspect.DictType):
        return _values(_changing(kind.value_type, seen))
    if isinstance(kind, inspect.StructType):
        return _struct(kind, seen)
    if isinstance(kind, inspect.UnionType):
        # If the union contains a float, a number may be a fraction. Otherwise it is meant as the integer.
        has_float = any(isinstance(one, inspect.FloatType) for one in kind.types)
        return _one_after_another(
            [_changing(one, seen) for one in kind.types if not (has_float and isinstance(one, inspect.IntType))]
        )
    return _same


def _struct(kind: inspect.StructType, seen: dict[type, list[Change]]) -> Change:
    if kind.cls in seen:
        holder = seen[kind.cls]
        return lambda value: holder[0](value)
    holder = seen[kind.cls] = [_same]
    fields = {
        field.encode_name: change for field in kind.fields if (change := _changing(field.type, seen)) is not _same
    }
    holder[0] = _fields(fields) if fields else _same
    return holder[0]


def _same(value: Any) -> Any:
    return value


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT_MAX else value


def _each(change: Change) -> Change:
    if change is _same:
        return _same

    def changed(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items = [change(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value

    return changed


def _values(change: Change) -> Change:
    if change is _same:
        return _same

    def changed(value: Any) -> Any:
        return _fields(dict.fromkeys(value, change))(value) if isinstance(value, dict) else value

    return changed


def _fields(changes: dict[str, Change]) -> Change:
    def changed(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        new = {name: change(value[name]) for name, change in changes.items() if name in value}
        return value | new if any(new[name] is not value[name] for name in new) else value

    return changed


def _one_after_another(changes: list[Change]) -> Change:
    needed = [change for change in changes if change is not _same]
    if not needed:
        return _same

    def changed(value: Any) -> Any:
        for change in needed:
            value = change(value)
        return value

    return changed
