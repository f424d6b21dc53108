"""Serves `/docs`: the OpenAPI document as one HTML page, without scripts or external files."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881;
    --get: #2a7f4f; --post: #2563a8; --patch: #9a6700; --delete: #b3352c; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { margin-bottom: 0 } h2 { margin: 2rem 0 .25rem; text-transform: capitalize }
nav a { margin-right: .75rem; white-space: nowrap }
details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0 }
details > div { padding: 0 1rem .75rem }
summary { cursor: pointer; padding: .45rem .75rem; overflow-wrap: anywhere }
summary:hover, details[open] > summary { background: var(--soft) }
.method { display: inline-block; min-width: 4.2rem; font-weight: 700 }
.get { color: var(--get) }
.post { color: var(--post) }
.patch, .put { color: var(--patch) } .delete { color: var(--delete) }
code, pre { font: 13px/1.45 ui-monospace, monospace }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; border-radius: 4px }
table { border-collapse: collapse; width: 100% }
th { text-align: left }
td, th { padding: .2rem .75rem .2rem 0; vertical-align: top; border-bottom: 1px solid var(--line) }
small { opacity: .75 }
"""
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}  # fmt: skip


def install(app: FastAPI) -> None:
    @cache
    def page() -> bytes:
        """Renders the page once for all requests."""
        return page_of(app.openapi()).encode()

    async def docs(_: Request) -> Response:
        return HTMLResponse(page(), headers=HEADERS)

    app.add_route("/docs", docs, include_in_schema=False)


def page_of(document: dict[str, Any]) -> str:
    info, tags = document["info"], document["tags"]
    links = "".join(f'<a href="#{_anchor(tag["name"])}">{escape(tag["name"])}</a>' for tag in tags)
    sections = "".join(_section(document, tag) for tag in tags)
    schemas = "".join(_schema(name, schema) for name, schema in document["components"]["schemas"].items())
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])} API</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>'
        f"<h1>{escape(info['title'])} <small>{escape(info['version'])}</small></h1><p>{escape(info['description'])} "
        f'Client generators can use <a href="/openapi.json">openapi.json</a>.</p>'
        f'<nav>{links}<a href="#schemas">schemas</a></nav>'
        f'{sections}<h2 id="schemas">Schemas</h2>{schemas}</body></html>'
    )


def _section(document: dict[str, Any], tag: dict[str, Any]) -> str:
    operations = [
        _operation(document, method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if tag["name"] in operation["tags"]
    ]
    title = f'<h2 id="{_anchor(tag["name"])}">{escape(tag["name"])}</h2>'
    return f"{title}<p>{escape(tag['description'])}</p>{''.join(operations)}"


def _operation(document: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> str:
    summary = f"<code>{escape(path)}</code> <small>{escape(operation['summary'])}</small>"
    head = f'<span class="method {method}">{method.upper()}</span> {summary}'
    parts = [
        f"<p>{escape(operation['description'])}</p>",
        *_parameters(document, operation),
        *_body(method, path, operation),
    ]
    answers = "".join(
        f"<tr><td><code>{status}</code></td><td>{escape(answer['description'])}</td><td>{_kinds(answer)}</td></tr>"
        for status, answer in operation["responses"].items()
    )
    parts.append(f"<h4>Answers</h4><table>{answers}</table>")
    return f'<details id="{operation["operationId"]}"><summary>{head}</summary><div>{"".join(parts)}</div></details>'


def _parameters(document: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
    named = document["components"]["parameters"]
    given = [named[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in operation["parameters"]]
    if given:
        rows = "".join(
            f"<tr><td><code>{escape(one['name'])}</code> <small>{one['in']}</small></td>"
            f"<td><code>{escape(_form(one['schema']))}</code></td><td>{escape(one['description'])}</td></tr>"
            for one in given
        )
        yield f"<h4>Parameters</h4><table>{rows}</table>"


def _body(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    if "requestBody" not in operation:
        return
    body = operation["requestBody"]
    yield f"<h4>Body</h4><p>{_kinds(body)}{'' if body['required'] else ' <small>optional</small>'}</p>"
    for content in body["content"].values():
        for name, example in content.get("examples", {}).items():
            text = json.dumps(example["value"], ensure_ascii=False)
            shown = f"curl -X {method.upper()} localhost:8000{path} -H 'Content-Type: application/json' -d '{text}'"
            yield f"<p>{escape(name)}</p><pre>{escape(shown)}</pre>"


def _kinds(told: dict[str, Any]) -> str:
    """The types of a body, with links to their schemas."""
    return "; ".join(
        f"{_linked(content['schema'])} <small>{escape(kind)}</small>"
        for kind, content in told.get("content", {}).items()
    )


def _schema(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code>{' <small>required</small>' if field in required else ''}</td>"
        f"<td>{_linked(inner)}</td><td>{escape(_description(inner))}</td></tr>"
        for field, inner in schema.get("properties", {}).items()
    )
    return (
        f'<details id="schema-{escape(name)}"><summary><code>{escape(name)}</code></summary>'
        f"<div><p>{escape(schema.get('description', ''))}</p><table>{rows}</table></div></details>"
    )


def _linked(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}"><code>{name}</code></a>'
    if "anyOf" in schema:
        return " or ".join(_linked(choice) for choice in schema["anyOf"])
    if schema.get("type") == "array" and "items" in schema:
        return f"list of {_linked(schema['items'])}"
    return f"<code>{escape(_form(schema))}</code>"


def _form(schema: dict[str, Any]) -> str:
    """A type with its limits."""
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_form(choice) for choice in schema["anyOf"])
    limits = [f"{word} {schema[key]}" for key, word in LIMITS.items() if key in schema]
    kind = schema.get("format") or schema.get("type") or "any"
    return f"{kind} ({', '.join(limits)})" if limits else kind


LIMITS = {
    "minimum": "from", "exclusiveMinimum": "above", "maximum": "to",
    "minLength": "min. length", "maxLength": "max. length",
    "minItems": "at least", "maxItems": "at most", "default": "by default",
}  # fmt: skip


def _description(schema: dict[str, Any]) -> str:
    told = [schema.get("description", ""), *(choice.get("description", "") for choice in schema.get("anyOf", []))]
    return " ".join(text for text in told if text)


def _anchor(name: str) -> str:
    return escape(f"tag-{name.replace(' ', '-')}")
