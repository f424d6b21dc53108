"""The OpenAPI parts of routes whose bodies the framework does not parse: made from the same types that decode them.

Every route says by `described` what it gives and takes; `document` puts the parts together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import inspect

# Under this name, and as text, it passes through the framework as it is: nulls and all.
DESCRIBED = "x-described"
JSON, PROBLEM_JSON = "application/json", "application/problem+json"
# What any request may meet: a header that is there twice, a caller who is not known, not allowed or too fast, a namespace that is none, a
# fault of ours, and a database that does not answer.
EVERYWHERE = (400, 401, 403, 422, 429, 500, 503)
OF_BODIES = (413, 415, 422)
IDEMPOTENCY_KEY, IF_MATCH, IF_NONE_MATCH = "Idempotency-Key", "If-Match", "If-None-Match"
PROBLEM = {"$ref": "#/components/schemas/Problem"}


def described(
    status: int,
    *answers: Any,
    body: Any = None,
    problems: tuple[int, ...] = (),
    repeated: bool = False,
    is_body_optional: bool = False,
    examples: Mapping[str, object] | None = None,
    tagged: bool = False,
    matched: bool = False,
    headers: tuple[str, ...] = (),
    media: tuple[str, ...] = (JSON,),
) -> dict[str, Any]:
    """The `openapi_extra` of a route that gives one of these answers.

    `repeated`: it takes an idempotency key, and answers with 200 to a repeated request. `examples`: bodies, by what they show; the tests
    send them. `tagged`: it gives an ETag, and 304 to whoever has it. `matched`: it takes If-Match. `headers`: others that it takes.
    """
    components: dict[str, Any] = {}
    statuses = {*problems, *EVERYWHERE, *(OF_BODIES if body is not None else ()), *((412,) if matched else ())}
    responses = {str(code): _problem(code) for code in sorted(statuses)}
    content = {kind: {"schema": _schema(answers, components)} for kind in media} if answers else None
    for code in (status, 200) if repeated else (status,):
        responses[str(code)] = {"description": HTTPStatus(code).phrase} | ({"content": content} if content else {})
        if tagged or (matched and content):
            responses[str(code)]["headers"] = {"ETag": {"$ref": "#/components/headers/ETag"}}
    if tagged:
        responses["304"] = {"description": "Not Modified: it is what If-None-Match names."}
    taken = [*headers, *([IDEMPOTENCY_KEY] if repeated else []), *([IF_MATCH] if matched else []), *([IF_NONE_MATCH] if tagged else [])]
    operation: dict[str, Any] = {
        "responses": dict(sorted(responses.items())),
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in taken],
    }
    if body is not None:
        sent: dict[str, Any] = {"schema": _schema((body,), components)}
        if examples:
            sent["examples"] = {name: {"value": value} for name, value in examples.items()}
        operation["requestBody"] = {"required": not is_body_optional, "content": {JSON: sent}}
    return {DESCRIBED: msgspec.json.encode(Described(operation, components)).decode()}


class Described(msgspec.Struct, frozen=True):
    operation: dict[str, Any]
    components: dict[str, Any]


def _problem(status: int) -> dict[str, Any]:
    return {"description": HTTPStatus(status).phrase, "content": {PROBLEM_JSON: {"schema": PROBLEM}}}


def _schema(kinds: tuple[Any, ...], components: dict[str, Any]) -> dict[str, Any]:
    schemas, found = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    readable: list[dict[str, Any]] = _readable(list(schemas))
    named = _readable(found)
    for component, field in _instants(inspect.multi_type_info(kinds), set()):
        named[component]["properties"][field] = _as_instant(named[component]["properties"][field])
    components.update(named)
    return readable[0] if len(readable) == 1 else {"anyOf": readable}


def _instants(kinds: tuple[inspect.Type, ...], seen: set[type]) -> Iterator[tuple[str, str]]:
    """The fields that hold instants, by the type that has them: their schemas alone do not tell them from other text."""
    for kind in kinds:
        if isinstance(kind, inspect.StructType | inspect.DataclassType) and kind.cls not in seen:
            seen.add(kind.cls)
            for field in kind.fields:
                if any(isinstance(part, inspect.DateTimeType) for part in _parts(field.type)):
                    yield kind.cls.__name__, field.encode_name
                yield from _instants((field.type,), seen)
        elif not isinstance(kind, inspect.StructType | inspect.DataclassType):
            yield from _instants(tuple(_parts(kind))[1:], seen)


def _parts(kind: inspect.Type) -> Iterator[inspect.Type]:
    """Itself, and what it is made of."""
    yield kind
    if isinstance(kind, inspect.UnionType):
        inner: tuple[inspect.Type, ...] = kind.types
    elif isinstance(kind, inspect.Metadata):
        inner = (kind.type,)
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType):
        inner = (kind.item_type,)
    else:
        inner = (kind.value_type,) if isinstance(kind, inspect.DictType) else ()
    for part in inner:
        yield from _parts(part)


def _as_instant(node: Any) -> Any:
    if isinstance(node, list):
        return [_as_instant(value) for value in node]
    if not isinstance(node, dict):
        return node
    return {key: _as_instant(value) for key, value in node.items()} | ({"format": "date-time"} if node.get("type") == "string" else {})


def _readable(node: Any) -> Any:
    """As generators of clients like it: enumerations say their type, lists what is in them, and patterns use what every engine knows."""
    if isinstance(node, list | tuple):
        return [_readable(value) for value in node]
    if not isinstance(node, dict):
        return node
    readable = {key: _readable(value) for key, value in node.items()}
    if "enum" in readable and "type" not in readable and all(isinstance(value, str) for value in node["enum"]):
        readable["type"] = "string"
    if readable.get("type") == "array":
        readable.setdefault("items", {})
    if isinstance(pattern := readable.get("pattern"), str):
        # The $ of JSON Schema does not match before a newline, as Python's does.
        readable["pattern"] = pattern.removesuffix(r"(?!\n)")
    return readable
