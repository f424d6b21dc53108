"""OpenAPI descriptions of single operations, made from the types that decode and encode their bodies.

Every route calls `described`; `document` combines the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import inspect

# The description passes through the framework as text, which keeps nulls.
DESCRIBED = "x-described"
JSON, PROBLEM_JSON = "application/json", "application/problem+json"
# Any request can fail with these: a repeated header, no or a wrong token, a missing permission, a bad namespace, a rate
# limit, an internal error, and an unavailable database.
EVERYWHERE = (400, 401, 403, 422, 429, 500, 503)
OF_BODIES = (413, 415, 422)
IDEMPOTENCY_KEY, IF_MATCH, IF_NONE_MATCH = "Idempotency-Key", "If-Match", "If-None-Match"
# Headers with a description of their own: see `HEADER_NAMES` in `document`.
CREATE_ONLY, EVENT_PLACE, LOG_PLACE = "Create-Only", "Event-Place", "Log-Place"
PROBLEM = {"$ref": "#/components/schemas/Problem"}
EVENT_STREAM = "text/event-stream"
RULES = "RULES"
NO_NUL = r"^[^\u0000]*$"
# Keywords that already rule out NUL in a text, and keywords that hold values instead of schemas.
TELLING = {"pattern", "enum", "const", "format"}
LITERAL = {"const", "enum", "default", "example", "examples", "required"}
ANY_VALUE = {"$ref": "#/components/schemas/JsonValue"}
ANY_OBJECT = {"propertyNames": {"pattern": NO_NUL}, "additionalProperties": ANY_VALUE}
JSON_VALUE = {
    "title": "JsonValue",
    "description": "Any JSON value. The NUL character is not allowed, because it can't be stored.",
    "anyOf": [
        {"type": ["null", "boolean", "number"]},
        {"type": "string", "pattern": NO_NUL},
        {"type": "array", "items": ANY_VALUE},
        {"type": "object"} | ANY_OBJECT,
    ],
}


def described(
    status: int,
    *answers: Any,
    body: Any = None,
    problems: tuple[int, ...] = (),
    repeated: bool = False,
    rehearsed: bool = False,
    is_body_optional: bool = False,
    examples: Mapping[str, object] | None = None,
    tagged: bool = False,
    matched: bool = False,
    headers: tuple[str, ...] = (),
    media: tuple[str, ...] = (JSON,),
    events: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The `openapi_extra` of a route with these answers.

    `repeated`: accepts an idempotency key and answers a repeated request with 200. `rehearsed`: answers a dry run with
    200. `examples`: bodies by title; the
    tests send them. `tagged`: returns an ETag, and 304 for If-None-Match. `matched`: accepts If-Match. `headers`:
    other headers it accepts. `events`: the types of its server-sent events, by name.
    """
    components: dict[str, Any] = {}
    body_components: dict[str, Any] = {}
    statuses = {*problems, *EVERYWHERE, *(OF_BODIES if body is not None else ()), *((412,) if matched else ())}
    responses = {str(code): _problem(code) for code in sorted(statuses)}
    content = {kind: {"schema": _schema(answers, components)} for kind in media} if answers else {}
    if events:
        content[EVENT_STREAM] = {"schema": _event_schema(events, components)}
    for code in (status, 200) if repeated or rehearsed else (status,):
        responses[str(code)] = {"description": HTTPStatus(code).phrase} | ({"content": content} if content else {})
        if tagged or (matched and content):
            responses[str(code)]["headers"] = {"ETag": {"$ref": "#/components/headers/ETag"}}
    if tagged:
        responses["304"] = {"description": "Not Modified: the ETag in If-None-Match is still current."}
    taken = [
        *headers,
        *([IDEMPOTENCY_KEY] if repeated else []),
        *([IF_MATCH] if matched else []),
        *([IF_NONE_MATCH] if tagged else []),
    ]
    operation: dict[str, Any] = {
        "responses": dict(sorted(responses.items())),
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in taken],
    }
    if body is not None:
        sent: dict[str, Any] = {"schema": storable(_schema((body,), body_components))}
        body_components = {name: storable(schema) for name, schema in body_components.items()}
        if examples:
            sent["examples"] = {name: {"value": value} for name, value in examples.items()}
        operation["requestBody"] = {"required": not is_body_optional, "content": {JSON: sent}}
    return {DESCRIBED: msgspec.json.encode(Described(operation, components, body_components)).decode()}


class Described(msgspec.Struct, frozen=True):
    operation: dict[str, Any]
    components: dict[str, Any]
    body_components: dict[str, Any]
    """Schemas of the body. They replace those of the answer with the same name, which are less strict."""


def _problem(status: int) -> dict[str, Any]:
    return {"description": HTTPStatus(status).phrase, "content": {PROBLEM_JSON: {"schema": PROBLEM}}}


def _schema(kinds: tuple[Any, ...], components: dict[str, Any]) -> dict[str, Any]:
    schemas, found = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    readable: list[dict[str, Any]] = _readable(list(schemas))
    named = _readable(found)
    for cls in _structs(inspect.multi_type_info(kinds), set()):
        if rules := getattr(cls, RULES, ()):
            named[cls.__name__]["allOf"] = [*named[cls.__name__].get("allOf", []), *map(dict, rules)]
    for component, field in _instants(inspect.multi_type_info(kinds), set()):
        named[component]["properties"][field] = _as_instant(named[component]["properties"][field])
    components.update(named)
    return readable[0] if len(readable) == 1 else {"anyOf": readable}


def _event_schema(events: Mapping[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """The schema of one server-sent event, whose data is JSON in a text."""
    kinds = [
        {
            "type": "object",
            "title": f"Event {name}",
            "required": ["event", "data"],
            "properties": {
                "event": {"const": name},
                "id": {"type": "string", "description": "Send it as Last-Event-ID to continue after this event."},
                "data": {"type": "string", "contentMediaType": JSON, "contentSchema": _schema((kind,), components)},
            },
        }
        for name, kind in events.items()
    ]
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def storable(node: Any) -> Any:
    """The schema of a body, with NUL ruled out in every text, because it can't be stored."""
    if isinstance(node, list):
        return [storable(value) for value in node]
    if not isinstance(node, dict):
        return node
    found = {key: value if key in LITERAL else storable(value) for key, value in node.items()}
    if found.get("type") == "string" and not found.keys() & TELLING:
        found["pattern"] = NO_NUL
    if found.get("type") == "object" and not found.keys() & {"properties", "additionalProperties", "allOf"}:
        found |= ANY_OBJECT
    if isinstance(found.get("additionalProperties"), dict) and "properties" not in found:
        found.setdefault("propertyNames", {"pattern": NO_NUL})
    if "properties" in found:
        found["properties"] = {
            name: ANY_VALUE | inner if _is_anything(inner) else inner for name, inner in found["properties"].items()
        }
    if _is_anything(found.get("items")):
        found["items"] = ANY_VALUE
    return found


def _is_anything(schema: Any) -> bool:
    return isinstance(schema, dict) and not schema.keys() - {"default", "description"}


def _structs(kinds: tuple[inspect.Type, ...], seen: set[type]) -> Iterator[type]:
    """All struct types within these types."""
    for kind in kinds:
        for part in _parts(kind):
            if isinstance(part, inspect.StructType) and part.cls not in seen:
                seen.add(part.cls)
                yield part.cls
                yield from _structs(tuple(field.type for field in part.fields), seen)


def _instants(kinds: tuple[inspect.Type, ...], seen: set[type]) -> Iterator[tuple[str, str]]:
    """The component and name of every datetime field, which its schema alone does not tell from other text."""
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
    """The type itself and the types it contains."""
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
    return {key: _as_instant(value) for key, value in node.items()} | (
        {"format": "date-time"} if node.get("type") == "string" else {}
    )


def _readable(node: Any) -> Any:
    """The schema as client generators expect it: enums and arrays are typed, and patterns are portable."""
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
