"""Parameters of a workflow: their JSON Schemas and defaults, the values of one submission, and where steps use them.

A payload uses a parameter as `{"$param": "region"}`, which becomes the value, or in a text that has placeholders as
`{{ params.region }}`. Both are filled in when the steps are stored, so a run never depends on the workflow's
parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from foliot.config import did_you_mean
from foliot.errors import Invalid
from foliot.model.json_schema import Checker, UnusableSchema
from foliot.model.payloads import PARAMETER, WORKFLOW_TASK, is_later
from foliot.model.rendering import has_templates
from foliot.model.run_request import RunRequest
from foliot.model.template_filters import text_of
from foliot.model.templates import OPENING, Placeholder, TemplateError, parse

PARAMETERS_MAX = 100
NAME = r"^[A-Za-z_][A-Za-z0-9_-]{0,99}$"
VALUES_MAX_BYTES = 65_536
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
KEYWORDS = frozenset(
    {
        "additionalProperties", "allOf", "anyOf", "const", "default", "description", "enum", "examples",
        "exclusiveMaximum",
        "exclusiveMinimum", "format", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
        "minLength",
        "minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern", "prefixItems", "properties", "required",
        "title",
        "type", "uniqueItems",
    }
)  # fmt: skip

Parameters = Mapping[str, Mapping[str, Any]]
Values = Mapping[str, Any]
NO_VALUES: Values = MappingProxyType({})
StepT = TypeVar("StepT", bound=RunRequest)


def values_of(parameters: Parameters, params: Values) -> dict[str, Any]:
    """The value of each parameter: as given, or its default. Raises `Invalid`, which names the parameter."""
    if not parameters and not params:
        return {}
    if len(parameters) > PARAMETERS_MAX:
        raise Invalid(f"parameters: a workflow has at most {PARAMETERS_MAX}", field="parameters")
    for name in params:
        if name not in parameters:
            known = f"; the workflow has {', '.join(parameters)}" if parameters else "; the workflow has no parameters"
            raise Invalid(
                f"params.{name}: there is no such parameter{did_you_mean(name, parameters) or known}",
                field=f"params.{name}",
            )
    for name in parameters:
        if not re.fullmatch(NAME, name):
            raise Invalid(
                f"parameters.{name[:100]}: the name must have letters, digits, _ and - only, and begin with a letter",
                field=f"parameters.{name[:100]}",
            )
    values = {name: _value(name, schema, params) for name, schema in parameters.items()}
    if len(msgspec.json.encode(values)) > VALUES_MAX_BYTES:
        raise Invalid(f"params: are larger than {VALUES_MAX_BYTES} bytes together", field="params")
    return values


def _value(name: str, schema: Mapping[str, Any], params: Values) -> Any:
    place = f"parameters.{name}"
    for keyword in schema:
        if keyword not in KEYWORDS:
            raise Invalid(
                f"{place}.{keyword}: is no keyword of a schema{did_you_mean(keyword, KEYWORDS)}",
                field=f"{place}.{keyword}",
            )
    kinds = schema.get("type", "object")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in TYPES:
            hint = did_you_mean(str(kind), TYPES) or f"; the types are {', '.join(TYPES)}"
            raise Invalid(f"{place}.type: there is no type {kind!r}{hint}", field=f"{place}.type")
    try:
        checker = Checker.of({keyword: part for keyword, part in schema.items() if keyword != "default"})
    except UnusableSchema as error:
        raise Invalid(f"{place}: {error}", field=place) from None
    if "default" in schema:
        checker.check(schema["default"], root=f"{place}.default")
    if name in params:
        checker.check(params[name], root=f"params.{name}", unknown=is_later)
        return params[name]
    if "default" not in schema:
        raise Invalid(f"params.{name}: is required, because the parameter has no default", field=f"params.{name}")
    return schema["default"]


def bind(step: StepT, values: Values) -> StepT:
    """The step with the values of the parameters in its payload and its command. Raises `Invalid`."""
    task = step.task_name()
    is_rendered = has_templates(task, step.templates)
    payload = step.payload
    if task == WORKFLOW_TASK:
        # The steps inside refer to parameters of their own.
        payload = payload and _with_params(payload, values)
    elif payload and (is_rendered or _uses(payload)):
        payload = {name: _bound(part, f"payload.{name}", values, is_rendered) for name, part in payload.items()}
    command = step.command
    if command is not None and OPENING in command and is_rendered:
        command = _bound_text(command, "command", values)
    if payload is step.payload and command is step.command:
        return step
    return msgspec.structs.replace(step, payload=payload, command=command)


def _with_params(payload: dict[str, Any], values: Values) -> dict[str, Any]:
    if not _uses(payload.get("params")):
        return payload
    return {**payload, "params": _bound(payload["params"], "payload.params", values, is_rendered=False)}


def _uses(value: Any) -> bool:
    if isinstance(value, Mapping):
        return PARAMETER in value or any(map(_uses, value.values()))
    return isinstance(value, list) and any(map(_uses, value))


def _bound(value: Any, place: str, values: Values, is_rendered: bool) -> Any:
    """Recursion is safe: decoders limit the depth."""
    if isinstance(value, str):
        return _bound_text(value, place, values) if is_rendered and OPENING in value else value
    if isinstance(value, list):
        return [_bound(inner, f"{place}[{number}]", values, is_rendered) for number, inner in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    if PARAMETER in value:
        return _referred(value, place, values)
    return {name: _bound(inner, f"{place}.{name}", values, is_rendered) for name, inner in value.items()}


def _referred(reference: Mapping[str, Any], place: str, values: Values) -> Any:
    name, path = reference[PARAMETER], reference.get("path", [])
    is_path = isinstance(path, list) and all(isinstance(part, str | int) for part in path)
    if not isinstance(name, str) or not is_path or set(reference) - {PARAMETER, "path"}:
        raise Invalid(
            f'{place}: write a parameter as {{"{PARAMETER}": "region"}}, or with a path: ["rows", 0]', field=place
        )
    return _looked_up(name, path, place, values)


def _looked_up(name: str, path: Any, place: str, values: Values) -> Any:
    if name not in values:
        known = did_you_mean(name, values) or f"; the parameters are {', '.join(values) or 'none'}"
        raise Invalid(f"{place}: there is no parameter {name!r}{known}", field=place)
    found = values[name]
    for part in path:
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and _is_place(part, found):
            found = found[int(part)]
        else:
            raise Invalid(f"{place}: the parameter {name!r} has no {part!r}", field=place)
    return found


def _is_place(part: str | int, items: list[Any]) -> bool:
    digits = str(part)
    return digits.isascii() and digits.isdecimal() and len(digits) < 10 and int(digits) < len(items)


def _bound_text(text: str, place: str, values: Values) -> str:
    """Each placeholder of a parameter becomes a placeholder with its value as quoted text, so that the filters and the
    quoting of commands apply as to any other."""
    try:
        parts = parse(text)
    except TemplateError as error:
        raise Invalid(f"{place}: {error.detail}", field=place) from None
    return "".join(_bound_part(part, text, place, values) for part in parts)


def _bound_part(part: str | Placeholder, text: str, place: str, values: Values) -> str:
    if isinstance(part, str):
        return part
    if part.name != "params":
        return text[part.start : part.end]
    if not part.parts:
        raise Invalid(f"{place}: params needs a part, such as params.region", field=place)
    found = _looked_up(part.parts[0], part.parts[1:], place, values)
    if found is None:
        found = next((one.argument for one in part.filters if one.name == "default"), None)
    if found is None:
        raise Invalid(f'{place}: the parameter {part.parts[0]!r} is null; add | default "..."', field=place)
    filters = "".join(
        f" | {one.name}" + ("" if one.argument is None else f" {_quoted(one.argument)}") for one in part.filters
    )
    return f"{{{{ {_quoted(text_of(found))}{filters} }}}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
