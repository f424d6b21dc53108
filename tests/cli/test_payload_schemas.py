"""Payload schemas in words, with a valid example."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import foliot
from foliot.cli.payload_schemas import argument_table, arguments_in_short, example_payload
from foliot.model.json_schema import Checker
from foliot.worker.announcement import version_of

app = foliot.App()


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    sku: str
    count: int


@app.task
async def order(
    customer: uuid.UUID,
    lines: list[Line],
    first: Line,
    at: dt.datetime,
    price: Decimal,
    colour: Colour,
    day: dt.date | None = None,
    note: str = "none",
) -> None: ...


@app.task
async def nothing() -> None: ...


def schema_of(task: foliot.Task[..., Any]) -> dict[str, Any]:
    schema = version_of(task).schema
    assert schema is not None
    return schema


def test_arguments_are_listed_with_their_types_and_defaults() -> None:
    assert arguments_in_short(schema_of(order)) == "customer, lines, first, at, price, colour, day?, note?"
    assert arguments_in_short(None) == "any"
    shown = {line.split()[0]: line for line in argument_table(schema_of(order)).splitlines()}
    assert shown["customer"].split() == ["customer", "uuid", "required"]
    assert "list of Line" in shown["lines"]
    assert '"red" | "blue"' in shown["colour"] or '"blue" | "red"' in shown["colour"]
    assert "date | null" in shown["day"]
    assert shown["note"].split() == ["note", "string", '"none"']
    assert argument_table(schema_of(nothing)) == "It has no arguments."


def test_the_example_is_a_valid_payload() -> None:
    schema = schema_of(order)
    example = example_payload(schema)
    assert set(example) == {"customer", "lines", "first", "at", "price", "colour"}
    assert Checker.of(schema).fault_in(example, unknown=None) is None


def test_a_recursive_schema_is_described() -> None:
    tree = {"$ref": "#/$defs/Tree"}
    schema = {
        "properties": {"tree": tree},
        "required": ["tree"],
        "$defs": {"Tree": {"properties": {"left": tree}, "required": ["left"]}},
    }
    assert arguments_in_short(schema) == "tree"
    assert "Tree" in argument_table(schema)
    assert set(example_payload(schema)) == {"tree"}
