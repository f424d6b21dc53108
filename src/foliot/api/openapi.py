"""The OpenAPI parts of routes whose bodies the framework does not parse: made from the same types that decode them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec

PROBLEM_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable: for programs."},
        "field": {"type": "string", "description": "The part of the request that is at fault."},
    },
}


def described(
    status: int, *answers: type, body: type | None = None, problems: tuple[int, ...] = (), repeated: bool = False
) -> dict[str, Any]:
    """The `openapi_extra` of a route that gives one of these answers; `repeated`: again with 200 to a repeated request."""
    schemas = [_inline(answer) for answer in answers]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    responses: dict[str, Any] = {
        str(code): {"description": HTTPStatus(code).phrase, "content": {"application/json": {"schema": schema}}}
        for code in ((status, 200) if repeated else (status,))
    }
    for code in problems:
        responses[str(code)] = {
            "description": HTTPStatus(code).phrase,
            "content": {"application/problem+json": {"schema": PROBLEM_SCHEMA}},
        }
    extra: dict[str, Any] = {"responses": responses}
    if body is not None:
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": _inline(body)}}}
    return extra


def _inline(kind: type) -> dict[str, Any]:
    """One schema with its definitions put in place of the references to them; our types do not refer to themselves."""
    (schema,), definitions = msgspec.json.schema_components([kind], ref_template="{name}")
    resolved = _resolve(schema, definitions)
    assert isinstance(resolved, dict)  # noqa: S101
    return resolved


def _resolve(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, dict):
        if "$ref" in node:
            return _resolve(definitions[node["$ref"]], definitions)
        return {key: _resolve(value, definitions) for key, value in node.items()}
    if isinstance(node, list):
        return [_resolve(value, definitions) for value in node]
    return node
