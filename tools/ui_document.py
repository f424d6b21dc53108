"""Writes ui/openapi.json, from which the types of the web UI are made: the OpenAPI document without its texts, examples
and limits of values, which types cannot express."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.document_api import document

TARGET = Path(__file__).resolve().parent.parent / "ui" / "openapi.json"
KEPT = frozenset({
    "$ref", "additionalProperties", "allOf", "anyOf", "const", "content", "enum", "in", "items", "name", "oneOf",
    "operationId", "parameters", "properties", "requestBody", "required", "responses", "schema", "type",
})  # fmt: skip
NAMED = frozenset({"properties", "content", "responses"})
"""Their keys are names."""
PROBLEM = {
    "description": "",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def text() -> str:
    """One line for each operation and schema, so that changes of several people merge."""
    whole = document()
    lines = {
        "paths": {
            path: {method: _operation(operation) for method, operation in methods.items()}
            for path, methods in whole["paths"].items()
        },
        "components": {
            kind: {name: _bare(one) for name, one in whole["components"][kind].items()}
            for kind in ("parameters", "schemas")
            if kind in whole["components"]
        },
    }
    parts = [
        ' "openapi": "3.1.0"',
        ' "info": {"title": "Foliot", "version": "1"}',
        *(f" {json.dumps(part)}: {_lines(named)}" for part, named in lines.items()),
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(named: dict[str, dict[str, Any]]) -> str:
    told = []
    for name, inner in named.items():
        body = ",\n".join(f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in inner.items())
        told.append(f"  {json.dumps(name)}: {{\n{body}\n  }}")
    return "{\n" + ",\n".join(told) + "\n }"


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    bare: dict[str, Any] = _bare(operation)
    good = {status: answer for status, answer in bare["responses"].items() if status < "4"}
    return bare | {"responses": {**good, "default": PROBLEM}}


def _bare(value: Any, *, is_named: bool = False) -> Any:
    if isinstance(value, list):
        return [_bare(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _bare(inner, is_named=key in NAMED) for key, inner in value.items() if is_named or key in KEPT}
    # A response must have a description.
    return kept | {"description": ""} if "description" in value and "content" in value and not is_named else kept
