"""Writes two files for the web UI. Its types are made from ui/openapi.json: the OpenAPI document without its texts,
examples and limits of values, which types cannot express. The forms of alerts are made from schemas with limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from foliot.model.alert_channel import KINDS
from foliot.model.alert_rule import INSTALLATION, SCOPES, Condition
from tools.document_api import document

UI = Path(__file__).resolve().parent.parent / "ui"
TARGET = UI / "openapi.json"
ALERTS_TARGET = UI / "src" / "pages" / "alerts" / "schemas.json"
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


def alert_schemas() -> str:
    """The fields of rules, of each condition and of each kind of channel, one line for each."""
    schemas = document()["components"]["schemas"]
    rule = _fields(schemas["AlertRule"], without=("condition", "scope"))
    conditions = {
        str(kind.__struct_config__.tag): {
            "schema": _fields(schemas[kind.__name__]),
            "scope": [name for name in schemas["Scope"]["properties"] if name in SCOPES.get(kind, ())],
            "isInstallation": kind in INSTALLATION,
        }
        for kind in get_args(Condition)
    }
    channels = {
        name: {"schema": _fields(schemas[kind.__name__]), "secrets": list(kind.SECRETS)} for name, kind in KINDS.items()
    }
    parts = [
        f' "rule": {json.dumps(rule)}',
        f' "scope": {json.dumps(_fields(schemas["Scope"]))}',
        f' "conditions": {_lines(conditions)}',
        f' "channels": {_lines(channels)}',
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _fields(schema: dict[str, Any], *, without: tuple[str, ...] = ("kind",)) -> dict[str, Any]:
    properties = {name: one for name, one in schema["properties"].items() if name not in without}
    required = [name for name in schema["required"] if name not in without]
    return {"type": "object", "properties": properties, "required": required}


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
