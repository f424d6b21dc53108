"""The OpenAPI document as a whole: what the routes say of themselves, and what is true of all of them."""

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
from foliot.api.openapi.patterns import INSTANT, PLACE_FORM, STATES, STORABLE, TEXT, UUID_FORM, optional, words
from foliot.api.requests.etags import TAGS_FORM
from foliot.model.idempotency import IDEMPOTENCY_KEY

LAB = "lab"
ID = "0190a6f0-8d3a-7c4e-9b1f-2f6d5c3a1b00"
SINCE_FORM = "An ISO 8601 time with an offset, or a duration: so long ago."

TAGS = {
    "jobs": "Jobs, one-off or recurring, one or many at once.",
    "recurring jobs": "Jobs that run again and again: changed, paused, triggered, backfilled, and their ticks.",
    "workflows": "Steps that wait for each other.",
    "runs": "What has run, runs, and will run, with its attempts and its output.",
    "dead letters": "Runs that failed for good.",
    "limits and pauses": "Limits of queues; pauses of queues, tasks and everything; circuits of tasks.",
    "calendars": "Named days on which the jobs that refer to them do not fire.",
    "explain": "Why something does not run.",
    "workers": "Who works, on what, and whether they are well.",
    "overview": "How much there is to do.",
    "access": "Who may use this Foliot, and who did what.",
    "health": "For load balancers and supervisors.",
    LAB: "The API of the distributed-scheduler lab, on the same engine.",
}

# What a parameter of this name is, wherever it is taken; those that are something else in one place are below.
PARAMETERS: dict[str, dict[str, Any]] = {
    "reference": {
        "description": "An id; or, of a recurring job, its name.",
        "minLength": 1,
        "example": "nightly-report",
    },
    "name": {
        "description": "Its name.",
        "minLength": 1,
        "maxLength": 200,
        "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$",
        "example": "mail",
    },
    "limit": {"description": "How many at most.", "minimum": 1, "maximum": 200},
    "count": {"description": "How many.", "minimum": 1, "maximum": 1000},
    "after": {"description": "The `next` of the page before.", **optional(PLACE_FORM)},
    "state": {
        "description": "States, inside words (ready, held, ...) or outside ones (pending, completed, ...), with commas between.",
        **STATES,
    },
    "status": {
        "description": "Only jobs of this status.",
        "enum": ["", "pending", "running", "completed", "failed", "cancelled"],
    },
    "queue": {"description": "Only those of this queue.", **TEXT},
    "task": {"description": "Only those of this task.", **TEXT},
    "job": {"description": "Only those of this recurring job, by id or name.", **TEXT},
    "group": {"description": "Only those of this group, as the groups are listed.", **TEXT},
    "tag": {"description": "Only those with this tag.", **TEXT},
    "since": {"description": f"Not before this. {SINCE_FORM}", **INSTANT},
    "until": {"description": f"Not after this. {SINCE_FORM}", **INSTANT},
    "text": {"description": "Only those that have this in their name, their task or their error.", **TEXT},
    "parent": {
        "description": "Only the steps of this workflow, or the items of this map: an id.",
        **optional(UUID_FORM),
    },
    "attempt": {"description": "The number of the attempt; else the last."},
    "follow": {"description": "Server-sent events, until the run has ended."},
    "flat": {"description": "One by one, not by groups."},
    "actor": {
        "description": "Only what tokens of this name did, in whichever namespace; or local, anonymous or database.",
        **TEXT,
    },
    "token": {"description": "Only what the token of this id did.", **TEXT},
    "action": {"description": "Only this, such as cancel_run.", **TEXT},
    "target": {"description": "Only what was done to this run, job, queue or token.", **TEXT},
    "denied": {"description": "Refusals only."},
    "replayed": {"description": "Also those that have been replayed."},
}
PARAMETERS_OF: dict[tuple[str, str], dict[str, Any]] = {
    ("get_events", "follow"): {"description": "Go on with what happens; else it ends when what has happened was told."},
    ("list_workflows", "state"): {
        "description": "running, completed, failed or cancelled; several with commas.",
        **words(("running", "completed", "failed", "cancelled")),
    },
    ("list_workflows", "name"): {"description": "Only those of this name.", **TEXT},
    ("list_workflows", "after"): {"description": "The `next` of the page before.", **optional(UUID_FORM)},
    ("list_jobs", "after"): {"description": "The `next` of the page before: a name.", **STORABLE},
    ("list_runs", "after"): {"description": "The `next` of the page before.", **optional(f"{UUID_FORM}|{PLACE_FORM}")},
    ("explain", "reference"): {
        "description": "The id of a run, a workflow or a job; or the name of a recurring job or a queue."
    },
    ("revoke_token", "reference"): {"description": "The token's id, or its name.", "example": "ci"},
    ("drain_worker", "reference"): {"description": "The worker's id.", "example": ID},
}
# Paths whose `reference` is an id and nothing else.
ID_ONLY = ("/v1/runs/", "/v1/workflows/", "/jobs/", "/v1/jobs/{reference}/cancel")

HEADERS: dict[str, str] = {
    "Idempotency-Key": "The same answer to a repeated request, instead of another job; 1 to 255 printable ASCII characters.",
    "If-Match": "An ETag, several, or `*`: nothing is done and 412 is the answer when it is not, or no longer, that of what is there.",
    "If-None-Match": "An ETag that is known: 304 without a body when it is still that of what is there.",
    "Create-Only": "`*`: nothing is done and 412 is the answer when there is one already.",
    "Last-Event-ID": "The id of the last event that was read: the stream goes on after it.",
    "Event-Place": "The id of the last event that was read, no more than a day ago: the stream goes on after it.",
    "Log-Place": "The id of the last event that was read: the stream goes on after it.",
    "Foliot-Namespace": "The namespace to work in, for those who may use several.",
    "X-Request-Id": "An id of your own for this request; it comes back in the answer and stands in the log.",
}
# Headers that mean something else in one place, and are described apart for it.
HEADER_NAMES = {"Create-Only": "If-None-Match", "Event-Place": "Last-Event-ID", "Log-Place": "Last-Event-ID"}
HEADER_FORMS: dict[str, dict[str, Any]] = {
    "Idempotency-Key": {"minLength": 1, "maxLength": 255, "pattern": f"^{IDEMPOTENCY_KEY.pattern}$"},
    "Create-Only": {"const": "*"},
    "Event-Place": optional(PLACE_FORM),
    "Log-Place": optional("[1-9][0-9]{0,17}:[0-9]{1,18}"),
    "If-Match": {"pattern": TAGS_FORM},
    "Foliot-Namespace": {"pattern": r"^[a-z0-9][a-z0-9_-]{0,62}$"},
}
# Where what an operation makes is to be found, by its id.
LINKS: dict[str, tuple[str, ...]] = {
    "create_job": (
        "get_job", "cancel_job", "change_job", "pause_job", "resume_job", "trigger_job", "backfill_job", "delete_job", "list_ticks",
        "next_ticks", "list_job_runs", "get_run", "cancel_run", "signal_run", "rerun_run", "list_attempts", "explain",
    ),
    "create_workflow": ("get_workflow", "cancel_workflow", "redrive_workflow", "explain"),
    "trigger_job": ("get_run", "cancel_run", "rerun_run", "list_attempts"),
    "rerun_run": ("get_run", "cancel_run"),
    "lab_create_job": ("lab_get_job", "lab_cancel_job"),
}  # fmt: skip
EVERYWHERE_HEADERS = ("Foliot-Namespace", "X-Request-Id")
ETAG = "Of what is shown. Send it as If-Match with a change, or as If-None-Match to ask whether there is anything new."
PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "description": "An error as RFC 9457 has it. `detail` says what was wrong, where, and what to do about it.",
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string", "description": "`urn:foliot:problem:` and the code."},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer", "description": "The status of the answer."},
        "detail": {"type": "string", "description": "For people."},
        "code": {"type": "string", "description": "Stable: for programs."},
        "field": {"type": "string", "description": "The part of the request that is at fault."},
        "request_id": {"type": "string", "description": "That of the request, as in the header X-Request-Id."},
    },
    "example": {
        "type": "urn:foliot:problem:unknown_task", "title": "Unprocessable Entity", "status": 422, "code": "unknown_task", "field": "task",
        "detail": "task: no worker knows a task named 'shel'; did you mean 'shell'?",
    },
}  # fmt: skip


def install(app: FastAPI) -> None:
    """The application shows this document instead of the framework's own."""

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            app.openapi_schema = document_of(app)
        return app.openapi_schema

    @cache
    def text() -> bytes:
        """Made once: anybody may ask for it, again and again."""
        return msgspec.json.encode(openapi())

    async def show(_: Request) -> Response:
        return Response(text(), media_type="application/json")

    # What the framework documents as the way to do it.
    setattr(app, "openapi", openapi)  # noqa: B010
    app.add_route("/openapi.json", show, include_in_schema=False)


def operation_id(route: APIRoute) -> str:
    """The handler's name. The lab's have names that ours have too."""
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
                # The framework knows of one status, and of 422 in a form of its own, which never leaves this server:
                # see `problems`.
                operation["parameters"] = [*operation.get("parameters", []), *described.operation.pop("parameters")]
                operation |= described.operation
                schemas |= {name: schema for name, schema in described.components.items() if name not in taken}
                schemas |= described.body_components
                taken |= set(described.body_components)
            _complete(path, operation)
            used |= set(operation["tags"])
    document["servers"] = [{"url": "/", "description": "This server"}]
    document["tags"] = [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
    # None at all is one of the choices: on a local `foliot up` nobody has to say who they are.
    document["security"] = [{"bearerAuth": []}, {}]
    document["components"] = {
        "schemas": dict(sorted(schemas.items())),
        "parameters": {name: _header(name, text) for name, text in HEADERS.items()},
        "headers": {"ETag": {"description": ETAG, "schema": {"type": "string"}, "example": '"3.6290a1f2c4.5d41402a"'}},
        "securitySchemes": {
            "bearerAuth": {"type": "http", "scheme": "bearer", "description": "A token, as `foliot token` makes it."}
        },
    }
    return document


def methods_of(document: dict[str, Any], path: str) -> list[str]:
    """What can be done with a path. One that is written out comes before one with a parameter."""
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
        told = {"description": "Its id.", "minLength": 1, "example": ID}
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
