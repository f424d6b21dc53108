"""Builds the OpenAPI document from the descriptions of the routes and the parts that all of them share."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import DESCRIBED, JSON_VALUE, Described
from foliot.api.openapi.patterns import (
    ALERT_STATES,
    INSTANT,
    NAME_FORM,
    PAYLOAD_VALUES,
    PLACE_FORM,
    RULE_NAME,
    STATES,
    STORABLE,
    TEXT,
    UUID_FORM,
    optional,
    words,
)
from foliot.api.requests.etags import TAGS_FORM
from foliot.api.requests.ranges import LENGTH_RANGE, NUMBER_RANGE
from foliot.model.idempotency import IDEMPOTENCY_KEY
from foliot.model.ids import ID_PREFIX

LAB = "lab"
ID = "0190a6f0-8d3a-7c4e-9b1f-2f6d5c3a1b00"
NAMES_FORM = "Several are separated by commas; in lists of runs, * is anything and ? one character."
SINCE_FORM = "An ISO 8601 time with an offset, or a duration such as 2h, counted back from now."

TAGS = {
    "jobs": "Create, show and cancel jobs, one at a time or in batches.",
    "recurring jobs": "Change, pause, trigger and backfill jobs with a schedule, and list their ticks.",
    "workflows": "Jobs made of steps that depend on each other.",
    "runs": "Past, current and upcoming runs, with their attempts and output.",
    "dead letters": "Runs that failed and have no retries left.",
    "limits and pauses": "Limits of queues, pauses of queues, tasks or the whole installation, and circuit breakers "
    "of tasks.",
    "calendars": "Named sets of dates on which the jobs that use them do not fire.",
    "sources": "Rules that turn messages of brokers and signed webhooks into jobs.",
    "alerts": "Rules that open alerts, open and past alerts, silences, heartbeats, and the channels of messages.",
    "explain": "Why a run, job or queue is not making progress, and what an id stands for.",
    "workers": "Workers, the runs they hold, whether they are healthy, and the tasks that they offer.",
    "overview": "Totals, queue depths and metrics.",
    "access": "Signing in, namespaces, tokens, disabled tasks and the audit record.",
    "health": "Liveness and readiness, for load balancers and process supervisors; nodes, database and settings, for "
    "administrators.",
    LAB: "The API of the distributed-scheduler lab, on the same engine.",
}

NAMED = {"minLength": 1, "maxLength": 200, "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$"}
# Parameters by name. PARAMETERS_OF holds the exceptions of single operations.
PARAMETERS: dict[str, dict[str, Any]] = {
    "reference": {
        "description": "The id of a job, or the name of a recurring job.",
        "minLength": 1,
        "example": "nightly-report",
    },
    "name": {"description": "The name.", "example": "mail", **NAMED},
    "limit": {"description": "The maximum number of items.", "minimum": 1, "maximum": 200},
    "count": {"description": "The number of items.", "minimum": 1, "maximum": 1000},
    "after": {"description": "The `next` of the previous page.", **optional(PLACE_FORM)},
    "state": {
        "description": (
            "Only these states, separated by commas: internal ones "
            "(ready, held, ...) or public ones (pending, completed, ...)."
        ),
        **STATES,
    },
    "status": {
        "description": "Only jobs with this status.",
        "enum": ["", "pending", "running", "completed", "failed", "cancelled"],
    },
    "queue": {"description": f"Only runs in these queues. {NAMES_FORM}", **TEXT},
    "task": {"description": f"Only runs of these tasks. {NAMES_FORM}", **TEXT},
    "job": {"description": "Only runs of this recurring job, by id or name.", **TEXT},
    "group": {"description": "Only dead letters of this group, by the id shown in the list of groups.", **TEXT},
    "tag": {"description": "Only items with this tag. Runs can be filtered by several, separated by commas.", **TEXT},
    "since": {"description": f"Only items at or after this time. {SINCE_FORM}", **INSTANT},
    "until": {"description": f"Only items up to this time. {SINCE_FORM}", **INSTANT},
    "text": {"description": "Only runs whose name, task or error contains this text.", **TEXT},
    "parent": {
        "description": "Only the steps of the workflow, or the items of the map, with this id.",
        **optional(UUID_FORM),
    },
    "not_text": {"description": "No runs whose name, task or error contains this text.", **TEXT},
    "worker": {
        "description": "Only runs of these workers, by id or by the name of a live one, separated by commas.",
        **TEXT,
    },
    "attempt": {
        "description": "Only runs with this number of attempts: `2`, `>1`, `<=3` or `1..3`.",
        **optional(NUMBER_RANGE),
    },
    "duration": {
        "description": "Only runs that took this time, or have been running for it: `>30s`, `<500ms` or `1m..5m`.",
        **optional(LENGTH_RANGE),
    },
    "priority": {"description": "Only runs with this priority: `0`, `>3` or `-5..5`.", **optional(NUMBER_RANGE)},
    "error": {"description": "Only runs whose error contains this text.", **TEXT},
    "reason": {
        "description": "Only runs that ended for these reasons, such as `error`, `timeout`, `lost` or `expired`, "
        "separated by commas.",
        **TEXT,
    },
    "payload": {
        "description": "Only runs with this value in the payload: the path of a field, a colon and the value, such as "
        "`customer.id:7`. Can be given several times.",
        **PAYLOAD_VALUES,
    },
    "not_state": {"description": "No runs in these states.", **STATES},
    "not_queue": {"description": "No runs in these queues.", **TEXT},
    "not_task": {"description": "No runs of these tasks.", **TEXT},
    "not_tag": {"description": "No runs with one of these tags.", **TEXT},
    "not_worker": {"description": "No runs of these workers.", **TEXT},
    "not_error": {"description": "No runs whose error contains this text.", **TEXT},
    "not_reason": {"description": "No runs that ended for these reasons.", **TEXT},
    "order": {
        "description": "The sort key: creation, duration, attempts or priority; with a minus, the latest or largest "
        "first."
    },
    "buckets": {"description": "The number of buckets.", "minimum": 1, "maximum": 120},
    "follow": {"description": "Stream server-sent events until the run ends."},
    "flat": {"description": "List single dead letters instead of groups."},
    "actor": {
        "description": (
            "Only actions of tokens with this name, in any namespace, or of `local`, `anonymous` or `database`."
        ),
        **TEXT,
    },
    "token": {"description": "Only actions of the token with this id.", **TEXT},
    "action": {"description": "Only this action, such as cancel_run.", **TEXT},
    "target": {"description": "Only actions on this run, job, queue or token.", **TEXT},
    "denied": {"description": "Only refused requests."},
    "replayed": {"description": "Include dead letters that have been replayed."},
    "dismissed": {"description": "Include dead letters that have been dismissed."},
    "runs": {"description": "Say what each worker runs now."},
    "statistics": {"description": "Say how long the latest runs of each task took, and how many failed."},
}
PARAMETERS_OF: dict[tuple[str, str], dict[str, Any]] = {
    **{
        (operation, "after"): {"description": "The `next` of the previous page.", **optional(UUID_FORM)}
        for operation in ("list_workflows", "list_approvals", "get_workflow_grid", "list_alerts", "list_dead_messages")
    },
    ("get_events", "follow"): {
        "description": "Keep the stream open for new events. Without it, the stream ends after the past events."
    },
    ("get_logs", "attempt"): {"description": "The number of the attempt. Defaults to the last one."},
    ("get_pulse", "follow"): {"description": "Keep the stream open. Without it, the stream ends after one document."},
    ("list_workflows", "state"): {
        "description": "Only these states, separated by commas: running, completed, failed, cancelled.",
        **words(("running", "completed", "failed", "cancelled")),
    },
    ("search", "q"): {"description": "A part of a name, or the beginning of an id.", "example": "mail", **TEXT},
    ("delete_view", "page"): {"description": "The list that the view is of.", **TEXT},
    ("delete_view", "name"): {"description": "The name of the view.", **TEXT},
    ("delete_view", "shared"): {"description": "Deletes the view that everybody in the namespace has."},
    ("list_workflows", "name"): {"description": "Only workflows with this name.", **TEXT},
    ("get_workflow_grid", "name"): {"description": "The name of a workflow, or of a recurring job.", **TEXT},
    ("get_workflow_grid", "limit"): {"description": "The maximum number of runs.", "minimum": 1, "maximum": 50},
    ("get_workflow_states", "since"): {
        "description": "The `cursor` of an earlier answer: only steps that have changed since.",
        **optional(r"\d{1,18}\.\d{1,11}"),
    },
    ("list_tasks", "after"): {"description": "The `next` of the previous page, a name.", **optional(NAME_FORM)},
    ("list_jobs", "after"): {"description": "The `next` of the previous page, a name.", **STORABLE},
    ("list_runs", "after"): {
        "description": "The `next` of the previous page.",
        **optional(f"{UUID_FORM}|{PLACE_FORM}"),
    },
    ("explain", "reference"): {"description": "The id of a run, workflow or job, or the name of a job or queue."},
    ("list_jobs", "paused"): {"description": "Only paused jobs."},
    ("list_jobs", "calendar"): {"description": "Only jobs that use this calendar.", **TEXT},
    ("list_job_versions", "before"): {
        "description": "The `next` of the previous page.",
        "minimum": 1,
        "maximum": 2**63 - 1,
    },
    ("get_tick_strip", "since"): {"description": f"The begin of the strip. {SINCE_FORM}", **INSTANT},
    ("get_tick_strip", "until"): {"description": f"The end of the strip. {SINCE_FORM}", **INSTANT},
    ("get_tick_strip", "cells"): {"description": "The number of cells at most.", "minimum": 1, "maximum": 400},
    ("next_ticks", "excluded"): {"description": "With the ticks that the calendar excludes."},
    ("get_series", "metric"): {"description": "The measurement: ended runs, seconds of waiting, or ready runs."},
    ("get_series", "group"): {"description": "The lines of the chart: states, quantiles or queues."},
    ("get_series", "since"): {"description": f"The begin of the chart. {SINCE_FORM}", **INSTANT},
    ("get_series", "until"): {"description": f"The end of the chart. {SINCE_FORM}", **INSTANT},
    ("get_series", "step"): {"description": "Seconds from point to point.", "minimum": 60, "multipleOf": 60},
    ("list_upcoming", "since"): {"description": "The begin, a time with an offset. Now by default.", **INSTANT},
    ("list_upcoming", "hours"): {"description": "How many hours from there.", "minimum": 1, "maximum": 744},
    ("list_upcoming", "queue"): {"description": "Only jobs of this queue.", **TEXT},
    ("list_upcoming", "tag"): {"description": "Only jobs with this tag.", **TEXT},
    ("get_scaling", "queue"): {
        "description": "Only these queues, separated by commas.",
        "pattern": f"^(?:{NAME_FORM}(?:,{NAME_FORM})*)?$",
        "maxLength": TEXT["maxLength"],
    },
    ("close_circuit", "name"): {"description": "The name of the task.", **NAMED},
    ("find_ids", "prefix"): {
        "description": "The first eight or more digits of an id.",
        "pattern": ID_PREFIX,
        "example": ID[:18],
    },
    ("list_alerts", "state"): {"description": "Only these states, separated by commas.", **ALERT_STATES},
    ("list_alerts", "rule"): {"description": "Only alerts of this rule.", **RULE_NAME},
    ("revoke_token", "reference"): {"description": "The id or the name of the token.", "example": "ci"},
    ("take_hook", "namespace"): {"description": "The namespace of the source.", **TEXT},
    ("drain_worker", "reference"): {"description": "The id of the worker.", "example": ID},
}
# Paths whose `reference` must be an id.
ID_ONLY = (
    "/v1/runs/", "/v1/alerts/", "/v1/alert-silences/", "/v1/workflows/", "/v1/sources/", "/jobs/",
    "/v1/jobs/{reference}/cancel",
)  # fmt: skip

HEADERS: dict[str, str] = {
    "Idempotency-Key": (
        "A repeated request with the same key gets the first "
        "answer and creates nothing. 1 to 255 printable ASCII characters."
    ),
    "If-Match": "One or more ETags, or `*`. The request is refused with 412 if none of them is the current ETag.",
    "If-None-Match": "An ETag you already have. The answer is 304 without a body if it is still current.",
    "Create-Only": "`*` only creates. The request is refused with 412 if the name exists.",
    "Last-Event-ID": "The id of the last event you read. The stream continues after it.",
    "Event-Place": "The id of the last event you read, at most a day old. The stream continues after it.",
    "Log-Place": "The id of the last event you read. The stream continues after it.",
    "Foliot-Namespace": "The namespace of the request, for tokens that are valid in several.",
    "X-Request-Id": "Your own id for this request. It is returned in the answer and recorded in the log.",
}
# Headers with a second meaning, which have a description of their own.
HEADER_NAMES = {"Create-Only": "If-None-Match", "Event-Place": "Last-Event-ID", "Log-Place": "Last-Event-ID"}
HEADER_FORMS: dict[str, dict[str, Any]] = {
    "Idempotency-Key": {"minLength": 1, "maxLength": 255, "pattern": f"^{IDEMPOTENCY_KEY.pattern}$"},
    "Create-Only": {"const": "*"},
    "Event-Place": optional(PLACE_FORM),
    "Log-Place": optional("[1-9][0-9]{0,17}:[0-9]{1,18}"),
    "If-Match": {"pattern": TAGS_FORM},
    "Foliot-Namespace": {"pattern": r"^[a-z0-9][a-z0-9_-]{0,62}$"},
}
# Operations that accept the id of a new resource, by the operation that creates it.
LINKS: dict[str, tuple[str, ...]] = {
    "create_job": (
        "get_job", "cancel_job", "change_job", "pause_job", "resume_job", "trigger_job", "backfill_job", "delete_job",
        "list_ticks", "next_ticks", "list_job_runs", "get_run", "cancel_run", "signal_run", "rerun_run",
        "list_attempts", "explain",
    ),
    "create_workflow": ("get_workflow", "cancel_workflow", "redrive_workflow", "explain"),
    "trigger_job": ("get_run", "cancel_run", "rerun_run", "list_attempts"),
    "rerun_run": ("get_run", "cancel_run"),
    "lab_create_job": ("lab_get_job", "lab_cancel_job"),
}  # fmt: skip
EVERYWHERE_HEADERS = ("Foliot-Namespace", "X-Request-Id")
ETAG = (
    "The version of the answer. Send it as If-Match with a change, "
    "or as If-None-Match to get 304 if nothing has changed."
)
PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "description": "An error in the format of RFC 9457.",
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string", "description": "`urn:foliot:problem:` followed by the code."},
        "title": {"type": "string", "description": "The HTTP status in words."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {"type": "string", "description": "A message for people: what is wrong with which field, and what "
        "to do."},
        "code": {"type": "string", "description": "A stable code for programs."},
        "field": {"type": "string", "description": "The field, parameter or header that is wrong."},
        "start": {"type": "integer", "description": "Where the error begins in a cron expression, counted from 0."},
        "end": {"type": "integer", "description": "Where it ends: the first character after it."},
        "request_id": {"type": "string", "description": "The id of the request, as in the header X-Request-Id."},
    },
    "example": {
        "type": "urn:foliot:problem:unknown_task", "title": "Unprocessable Entity", "status": 422,
        "code": "unknown_task", "field": "task",
        "detail": "task: no worker knows a task named 'shel'; did you mean 'shell'?",
    },
}  # fmt: skip


def install(app: FastAPI) -> None:
    """Serves this document at /openapi.json instead of the framework's own."""

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            app.openapi_schema = document_of(app)
        return app.openapi_schema

    @cache
    def text() -> bytes:
        """Encodes the document once for all requests."""
        return msgspec.json.encode(openapi())

    async def show(_: Request) -> Response:
        return Response(text(), media_type="application/json")

    # FastAPI documents this way to replace the document.
    setattr(app, "openapi", openapi)  # noqa: B010
    app.add_route("/openapi.json", show, include_in_schema=False)


def operation_id(route: APIRoute) -> str:
    """The handler's name, with a prefix for the lab, whose handlers share names with ours."""
    return f"lab_{route.name}" if LAB in route.tags else route.name


def document_of(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas: dict[str, Any] = {"Problem": PROBLEM, "JsonValue": JSON_VALUE}
    used: set[str] = set()
    taken: set[str] = set()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if DESCRIBED in operation:
                described = msgspec.json.decode(operation.pop(DESCRIBED), type=Described)
                # The framework describes one status, and 422 in its own format, which `problems` replaces.
                operation["parameters"] = [*operation.get("parameters", []), *described.operation.pop("parameters")]
                operation |= described.operation
                schemas |= {name: schema for name, schema in described.components.items() if name not in taken}
                schemas |= described.body_components
                taken |= set(described.body_components)
            _complete(path, operation)
            used |= set(operation["tags"])
    document["servers"] = [{"url": "/", "description": "This server"}]
    document["tags"] = [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
    # The empty choice is for local open mode, which needs no token.
    document["security"] = [{"bearerAuth": []}, {}]
    document["components"] = {
        "schemas": dict(sorted(schemas.items())),
        "parameters": {name: _header(name, text) for name, text in HEADERS.items()},
        "headers": {"ETag": {"description": ETAG, "schema": {"type": "string"}, "example": '"3.6290a1f2c4.5d41402a"'}},
        "securitySchemes": {
            "bearerAuth": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token created by `foliot token create` or `POST /v1/tokens`.",
            }
        },
    }
    return document


def methods_of(document: dict[str, Any], path: str) -> list[str]:
    """The methods of a path. A literal path takes precedence over one with a parameter."""
    if path not in document["paths"]:
        path = next(
            (
                known
                for known in document["paths"]
                if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(known)), path)
            ),
            "",
        )
    return sorted(method.upper() for method in document["paths"].get(path, {}))


def _complete(path: str, operation: dict[str, Any]) -> None:
    operation["summary"] = operation["operationId"].replace("_", " ").capitalize()
    parameters = [_parameter(path, operation["operationId"], given) for given in operation.get("parameters", [])]
    if path.startswith("/v1"):
        parameters += [{"$ref": f"#/components/parameters/{name}"} for name in EVERYWHERE_HEADERS]
    operation["parameters"] = parameters
    for linked in LINKS.get(operation["operationId"], ()):
        link = {"operationId": linked, "parameters": {"reference": "$response.body#/id"}}
        operation["responses"]["201"].setdefault("links", {})[linked] = link


def _parameter(path: str, operation: str, given: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in given:
        return given
    name = given["name"]
    told = dict(PARAMETERS_OF.get((operation, name)) or PARAMETERS.get(name, {}))
    if name == "reference" and path.startswith(ID_ONLY):
        told = {"description": "The id.", "minLength": 1, "example": ID}
    schema = {key: value for key, value in given["schema"].items() if key != "title"}
    shown = {key: told.pop(key) for key in ("description", "example") if key in told}
    return {key: value for key, value in given.items() if key != "schema"} | shown | {"schema": schema | told}


def _header(name: str, text: str) -> dict[str, Any]:
    return {
        "name": HEADER_NAMES.get(name, name),
        "in": "header",
        "required": False,
        "description": text,
        "schema": {"type": "string"} | HEADER_FORMS.get(name, {}),
    }
