"""The page docs/http-api.md: every route and every code of an error, from the OpenAPI document and `foliot.errors`."""

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

Every server shows the same as OpenAPI: as a page at `/docs`, and for generators of clients at `/openapi.json`.

- Bodies are JSON (`Content-Type: application/json`), at most as large as `body_max_bytes` and `batch_max_bytes` say
  ([configuration](configuration.md)). They are at most 100 levels deep, hold at most 1,000,000 values, and no number in them has more than
  500 digits. Compressed bodies (`Content-Encoding`) are refused. A field that does not exist is refused, so a typing error is not
  overlooked; of one that is given twice, the last counts.
- A request has to arrive in time (else 408), its first line and headers have to be small (else 414 or 431), and there has to be room for
  one more connection (else 503). [The limits](security.md#request-limits) are settings. These answers come before a route is looked for.
- The OpenAPI document describes what is taken, down to the patterns of texts and the fields that exclude each other. Some rules are beyond
  a schema: a task, a job or a calendar that is named must exist, a cron expression must be one, a time zone must be known, some instants
  must lie in the future and before 2200, `until` comes after `since`, and steps of a workflow name each other. A request that breaks one of
  these is refused with 422, and the answer says which. An integer may be written as `5` or `5.0`. No text holds the character NUL.
- Times are ISO 8601 with an offset. Lists have a `limit` of up to 200 and a `next` to give as `after`.
- Errors are problem documents (RFC 9457) with a stable [`code`](#errors) and, where there is one, the `field` at fault.
- `Authorization: Bearer ...` says who you are. On a local `foliot up`, nobody has to.
- `Idempotency-Key`: a request that is sent again gets the answer that it got before, with `"created": false`.
- `ETag` and `If-Match`: a recurring job, a calendar and the limits of a queue come with an ETag. Sent back as If-Match with a change, it is
  made only if nobody has changed them since, else 412. What counts is the `version`: that a job fires, or is paused, makes no new one. As
  If-None-Match with a GET it saves the answer (304); `If-None-Match: *` with the PUT of a calendar makes one and changes none.

Any route may also answer with {everywhere}.
These are left out below.

```sh
curl localhost:8000/v1/jobs -H 'Content-Type: application/json' -d '{{"command": "echo hello", "delay_seconds": 5}}'
```
"""
# Whose first example is shown.
SHOWN = ("create_job", "create_workflow", "change_job", "replay_dead_letters", "pause_queue", "put_calendar")
ERRORS_HEADER = """
## Errors

| code | status | meaning |
|---|---|---|
"""
# Codes that no exception stands for: the guard at the door, the framework, and faults of ours.
OTHERS = {
    "method_not_allowed": (405, "The path has no such method; `Allow` names those that it has."),
    "internal": (500, "A fault of ours; the log says what."),
}


def document() -> dict[str, Any]:
    """Of the real application. Its routes hold a store and a submitter; nobody calls them."""
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
    """A few lines: what it does, what it takes, how it answers."""
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
    """The components that a body is one of; or its media type, with the components that are in the events of a
    stream."""
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
