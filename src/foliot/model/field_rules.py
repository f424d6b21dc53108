"""Rules between the fields of a request, as JSON Schema has them, for the API's document. The code that they stand
beside enforces them.

A type lists them as `RULES`: all of them hold. A field that is null counts as one that is not given, as it does
everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Rule = Mapping[str, Any]
NULL = {"type": "null"}


def given(*names: str) -> Rule:
    """All of them."""
    return {"required": list(names), "properties": {name: {"not": NULL} for name in names}}


def not_given(*names: str) -> Rule:
    """None of them."""
    return {"properties": dict.fromkeys(names, NULL)}


def any_of(*rules: Rule) -> Rule:
    return {"anyOf": list(rules)}


def all_of(*rules: Rule) -> Rule:
    """In one schema where they are about different fields: readers, and generators of requests, find that easier than a
    list of schemas."""
    merged: dict[str, Any] = {"properties": {}}
    apart: list[Rule] = []
    for rule in rules:
        if rule.keys() - {"required", "properties"} or rule["properties"].keys() & merged["properties"].keys():
            apart.append(rule)
            continue
        merged["properties"] |= rule["properties"]
        if "required" in rule:
            merged["required"] = [*merged.get("required", []), *rule["required"]]
    return merged | ({"allOf": apart} if apart else {})


def any_given(*names: str) -> Rule:
    return any_of(*(given(name) for name in names))


def at_most_one(*names: str) -> Rule:
    return any_of(*(not_given(*(other for other in names if other != name)) for name in names))


def exactly_one(*names: str) -> Rule:
    return any_of(*(all_of(given(name), not_given(*(other for other in names if other != name))) for name in names))


def field_is(name: str, schema: Mapping[str, Any], *, required: bool = False) -> Rule:
    """A field that fits the schema; or that is not there, unless it is required."""
    return {"properties": {name: dict(schema)}} | ({"required": [name]} if required else {})
