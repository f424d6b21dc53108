"""Writes docs/logs.md and the JSON Schema of a log line, from the events in code."""

from __future__ import annotations

import importlib
import json
import types
from dataclasses import fields
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import foliot
from foliot.events import Event
from foliot.model.histogram import Histogram
from foliot.observability.logs import Level, fixed_level_of

DOCS = Path(__file__).resolve().parent.parent / "docs"
SOURCE = Path(foliot.__file__).parent
TARGET = DOCS / "logs.md"
SCHEMA_TARGET = DOCS / "assets" / "log-line.schema.json"
PARTS = ("up", "server", "scheduler", "worker", "migrate")
HEADER = """\
# Logs

Made by `make docs` from the events in code. Do not edit.

Servers, scheduler nodes and workers write one line for each event to standard error: as text on a terminal, and as one
JSON object for each line elsewhere. `log_format` chooses one of the two, and `log_level` sets the lowest level.

```console
FOLIOT_LOG_FORMAT=json foliot scheduler 2>> scheduler.log
```

Each line has these fields, in this order, and then those of its event:

| field | meaning |
|---|---|
| `at` | The time, by the clock of the machine. |
| `level` | `debug`, `info` or `warning`. |
| `part` | The kind of process: `up`, `server`, `scheduler` or `worker`. |
| `process` | The host and the id of the process. |
| `event` | The name of the event. |

These fields mean the same in all events:

| field | meaning |
|---|---|
| `run_id` | The id of a run. `foliot runs show` and `foliot logs` accept it. |
| `job`, `job_id` | The name or id of a recurring job. |
| `task`, `queue` | Names, with their namespace in front unless it is `default`. |
| `trace_id` | The trace that a run or a request belongs to, whether or not it has been [sent](traces.md). |
| `request_id` | The id of a request, as in the header `X-Request-Id` of its answer and in the audit log. |

Texts are cut after 8,192 characters, and passwords in URLs are masked. Lines about a batch of runs have counts instead
of ids: at thousands of jobs a second, a line for each run would cost more than the run. [Events](events.md) and
[traces](traces.md) cover each run. The output of jobs is not part of these logs: see `foliot logs`.

[A JSON Schema](assets/log-line.schema.json) describes a line. Later versions add fields and events.

## Events

| event | level | fields | meaning |
|---|---|---|---|
"""
SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    UUID: {"type": "string", "format": "uuid"},
    types.NoneType: {"type": "null"},
    Histogram: {
        "type": "object",
        "properties": {
            "counts": {"type": "array", "items": {"type": "integer"}},
            "seconds": {"type": "number"},
        },
    },
}


def event_types() -> list[type[Event]]:
    """All events in the sources, in the order of their names."""
    found: list[type[Event]] = []
    for path in sorted(SOURCE.rglob("*.py")):
        if "(Event):" in path.read_text(encoding="utf-8"):
            module = importlib.import_module(".".join(("foliot", *path.relative_to(SOURCE).with_suffix("").parts)))
            found += [
                kind
                for kind in vars(module).values()
                if isinstance(kind, type) and issubclass(kind, Event) and kind.__module__ == module.__name__
            ]
    return sorted((kind for kind in found if kind is not Event), key=lambda kind: kind.__name__)


def page() -> str:
    return HEADER + "".join(map(_row, event_types()))


def _row(event: type[Event]) -> str:
    names = ", ".join(f"`{field.name}`" for field in fields(event))
    # A dataclass without a text of its own gets its signature as one.
    text = (event.__doc__ or "").replace("\n", " ")
    meaning = "" if text.startswith(f"{event.__name__}(") else " ".join(text.split())
    return f"| `{event.__name__}` | {fixed_level_of(event)} | {names} | {meaning} |\n"


def schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A log line of Foliot",
        "type": "object",
        "properties": {
            "at": {"type": "string", "format": "date-time"},
            "level": {"enum": list(get_args(Level))},
            "part": {"enum": list(PARTS)},
            "process": {"type": "string"},
            "event": {"type": "string"},
        },
        "required": ["at", "level", "part", "process", "event"],
        "allOf": [
            {"if": {"properties": {"event": {"const": event.__name__}}}, "then": _fields_of(event)}
            for event in event_types()
            if fields(event)
        ],
    }


def schema_text() -> str:
    return json.dumps(schema(), indent=1) + "\n"


def _fields_of(event: type[Event]) -> dict[str, Any]:
    hints = get_type_hints(event)
    names = [field.name for field in fields(event)]
    return {"properties": {name: _type_of(hints[name]) for name in names}, "required": names}


def _type_of(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type_of(one) for one in arguments]}
    if origin in (tuple, list):
        return {"type": "array", "items": _type_of(arguments[0])}
    return SCALARS[hint]


def write() -> None:
    TARGET.write_text(page())
    SCHEMA_TARGET.write_text(schema_text())
