"""Writes docs/http-api.md: every route and error code, from the OpenAPI document and `foliot.errors`."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from unittest.mock import Mock

import foliot
from foliot.api.app import build_app
from foliot.api.openapi.document import EVERYWHERE_HEADERS
from foliot.api.openapi.operations import EVERYWHERE
from foliot.api.problems import STATUS
from foliot.clock import SystemClock
from foliot.config import Config
from foliot.errors import FoliotError

HEADER = """\
# The HTTP API

Made by `make docs` from the routes and `src/foliot/errors.py`. Do not edit.

Submit a job:

```sh
curl localhost:8000/v1/jobs -H 'Content-Type: application/json' -d '{{"command": "echo hello", "delay_seconds": 5}}'
```

Every server also shows this reference as a page at `/docs`, and as OpenAPI at `/openapi.json`.

- **Authentication.** Send `Authorization: Bearer TOKEN`. A local `foliot up` needs no token.
- **Bodies** are JSON (`Content-Type: application/json`), up to `body_max_bytes` or `batch_max_bytes`
  ([configuration](configuration.md)), 100 levels, 500,000 values, and 500 digits in a number. The server rejects
  unknown fields and compressed bodies. If a field appears twice, the last one counts.
- **Values.** Times are ISO 8601 with an offset. An integer may be `5` or `5.0`. Text must not contain NUL.
- **Lists** take a `limit` of up to 200, and return a `next` to send as `after`.
- **Errors** are problem documents (RFC 9457) with a stable [`code`](#errors) and, where possible, the wrong
  `field`.
- **Idempotency.** A repeated request with the same `Idempotency-Key` gets the first response, with
  `"created": false`.
- **Validation.** The OpenAPI document describes types, patterns and fields that exclude each other. The server
  checks further rules and answers 422: a named task, job or calendar must exist, cron expressions and time zones
  must be valid, some instants must be in the future and before 2200, `until` must be after `since`, and workflow
  steps must name each other.
- **ETags.** Recurring jobs, calendars and queue limits have an ETag. Send it as `If-Match` with a change to get 412
  if the object has changed since, or as `If-None-Match` with a GET to get 304 if it has not. The ETag follows the
  `version`, which does not change when a job fires or is paused. `If-None-Match: *` with the PUT of a calendar
  creates it but never changes it.
- **Limits.** A request that is too slow gets 408, one with a head that is too large 414 or 431, and one too many
  503. [The limits](security.md#request-limits) are settings, and are checked before routing.

Any route may also answer with {everywhere}. The routes below do not repeat these.
"""
# Operations whose first example is shown.
SHOWN = ("create_job", "create_workflow", "change_job", "replay_dead_letters", "pause_queue", "put_calendar")
ERRORS_HEADER = """
## Errors

| code | status | meaning |
|---|---|---|
"""
# Codes without an exception class.
OTHERS = {
    "method_not_allowed": (405, "The path does not support this method; `Allow` lists the methods it supports."),
    "internal": (500, "A bug in Foliot; the server's log has the details."),
}


def document() -> dict[str, Any]:
    """Returns the OpenAPI document of the real application. No route is called, so its store can be a mock."""
    return build_app(
        store=Mock(), submitter=Mock(), audit=None, config=Config(), clock=SystemClock(), is_open=True
    ).openapi()


def api_page() -> str:
    shown = document()
    parts = [HEADER.format(everywhere=", ".join(f"{status} ({HTTPStatus(status).phrase})" for status in EVERYWHERE))]
    for tag in shown["tags"]:
        parts.append(f"\n## {tag['name'].capitalize()}\n\n{tag['description']}\n")
        for path, methods in shown["paths"].items():
            parts.extend(
                route(shown, method, path, found) for method, found in methods.items() if tag["name"] in found["tags"]
            )
    parts.append(
        ERRORS_HEADER + "".join(f"| `{code}` | {status} | {meaning} |\n" for code, status, meaning in sorted(errors()))
    )
    return "".join(parts)


def route(shown: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> str:
    """Describes a route in a few lines: purpose, parameters, body and responses."""
    lines = [f"### `{method.upper()} {path}`", "", " ".join(operation["description"].split()), ""]
    named = shown["components"]["parameters"]
    given = [named[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in operation["parameters"]]
    lines += [f"- `{one['name']}`{limits(one)}: {one['description']}" for one in given if one["in"] != "header"]
    if headers := [
        f"`{one['name']}`" for one in given if one["in"] == "header" and one["name"] not in EVERYWHERE_HEADERS
    ]:
        lines.append(f"- Headers: {', '.join(headers)}")
    if "requestBody" in operation:
        optional = "" if operation["requestBody"]["required"] else ", may be left out"
        lines.append(f"- Body: {names(operation['requestBody'])}{optional}")
    statuses = [status for status in operation["responses"] if int(status) not in EVERYWHERE]
    good = [f"{status}{of(operation['responses'][status])}" for status in statuses if status < "400"]
    bad = [status for status in statuses if status >= "400"]
    lines.append(f"- Answers: {', '.join(good)}{'; ' if bad else ''}{', '.join(bad)}")
    return "\n" + "\n".join([*lines, *example(method, path, operation)]) + "\n"


def of(answer: dict[str, Any]) -> str:
    return f" {names(answer)}" if "content" in answer else ""


def names(told: dict[str, Any]) -> str:
    """Names the components of a body, or its media type; for a stream also the components of its events."""
    found: dict[str, None] = {}
    for kind, content in told["content"].items():
        named = [
            f"`{name}`" for name in dict.fromkeys(re.findall(r"#/components/schemas/(\w+)", str(content["schema"])))
        ]
        if kind == "text/event-stream":
            found[f"`{kind}` of {' or '.join(named)}"] = None
        else:
            found |= dict.fromkeys(named or [f"`{kind}`"])
    return " or ".join(found)


def limits(parameter: dict[str, Any]) -> str:
    schema = parameter["schema"]
    kind = schema.get("type") or "integer"
    bounds = f", {schema['minimum']} to {schema['maximum']}" if "maximum" in schema else ""
    default = f", by default {json.dumps(schema['default'])}" if schema.get("default") not in (None, "") else ""
    return "" if kind == "string" else f" ({kind}{bounds}{default})"


def example(method: str, path: str, operation: dict[str, Any]) -> list[str]:
    if operation["operationId"] not in SHOWN:
        return []
    body = next(iter(operation["requestBody"]["content"]["application/json"]["examples"].values()))["value"]
    url = f"localhost:8000{path.replace('{reference}', 'nightly-report').replace('{name}', 'mail')}"
    verb = "" if method == "post" else f"-X {method.upper()} "
    return [
        "",
        "```sh",
        f"curl {verb}{url} -H 'Content-Type: application/json' \\",
        f"  -d '{json.dumps(body)}'",
        "```",
    ]


def errors() -> Iterator[tuple[str, str, str]]:
    for module in pkgutil.walk_packages(foliot.__path__, "foliot."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    yield from ((code, str(status), meaning) for code, (status, meaning) in OTHERS.items())
    for kind in family(FoliotError):
        status = next((str(status) for base, status in STATUS.items() if issubclass(kind, base)), "in Python")
        yield kind.code, status, " ".join((inspect.getdoc(kind) or "").split())


def family(kind: type[FoliotError]) -> Iterator[type[FoliotError]]:
    if kind.__module__.startswith("foliot."):
        yield kind
    for child in kind.__subclasses__():
        yield from family(child)
