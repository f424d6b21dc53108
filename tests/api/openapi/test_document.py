"""The OpenAPI document is valid, complete and true. A new route without a description fails here with a message that
says what is missing."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from uuid import UUID

import httpx
import jsonschema
import pytest
from fastapi import FastAPI
from openapi_spec_validator import OpenAPIV31SpecValidator

from foliot.config import Config
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.source import IncomingMessage, Source
from foliot.model.states import RunState
from foliot.model.webhook_signature import signature_of
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from tests.support.alerts import opened_alert
from tests.support.runs import claim_runs, finish

METHODS = {"get", "put", "post", "patch", "delete"}
# Written by hand, so that nobody renames the functions of generated clients.
STABLE = {
    ("post", "/v1/jobs"): "create_job", ("get", "/v1/jobs/{reference}"): "get_job", ("post",
        "/v1/jobs/batch"): "create_batch",
    ("post", "/v1/workflows"): "create_workflow", ("get", "/v1/runs"): "list_runs", ("get",
        "/v1/runs/{reference}/logs"): "get_logs",
    ("post", "/v1/runs/{reference}/cancel"): "cancel_run", ("post", "/v1/jobs/{reference}/cancel"): "cancel_job",
    ("post", "/v1/dead-letters/replay"): "replay_dead_letters", ("post", "/jobs"): "lab_create_job", ("get",
        "/metrics"): "get_metrics",
}  # fmt: skip


@pytest.fixture
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert method in METHODS
            yield method, path, operation


async def test_it_is_valid_and_served(client: httpx.AsyncClient, document: dict[str, Any]) -> None:
    answer = await client.get("/openapi.json")
    assert answer.json() == document
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def lacks(operation: dict[str, Any]) -> Iterator[str]:
    if not operation.get("description"):
        yield "its handler has no docstring"
    if not operation.get("tags"):
        yield "its router has no tag"
    if not any(200 <= int(status) < 300 for status in operation["responses"]):
        yield "no answer is a success"
    yield from (
        f"the answer {status} has no schema"
        for status, answer in operation["responses"].items()
        if not has_schema(answer)
    )
    yield from (
        f"the answer {status} is no problem document"
        for status, answer in operation["responses"].items()
        if int(status) >= 400 and list(answer.get("content", {})) != ["application/problem+json"]
    )
    given = [parameter for parameter in operation.get("parameters", []) if "$ref" not in parameter]
    yield from (
        f"{one['name']!r} is not in PARAMETERS of api/openapi/document.py"
        for one in given
        if not one.get("description")
    )
    if "requestBody" in operation and not body_examples(operation):
        yield "its body has no examples"


def has_schema(answer: dict[str, Any]) -> bool:
    return bool(answer["description"]) and all(content.get("schema") for content in answer.get("content", {}).values())


def test_every_route_is_described(document: dict[str, Any]) -> None:
    missing = [
        f"{method.upper()} {path}: {lack}; see described() in api/openapi/operations.py"
        for method, path, operation in operations(document)
        for lack in lacks(operation)
    ]
    used = {tag for _, _, operation in operations(document) for tag in operation["tags"]}
    missing += [
        f"the tag {tag!r} is not in TAGS of api/openapi/document.py"
        for tag in sorted(used - {tag["name"] for tag in document["tags"]})
    ]
    assert missing == []


def test_operation_ids_are_readable_and_stable(document: dict[str, Any]) -> None:
    names = {(method, path): operation["operationId"] for method, path, operation in operations(document)}
    assert len(set(names.values())) == len(names)
    assert [name for name in names.values() if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)] == []
    assert names.items() >= STABLE.items()
    assert {operation["summary"] for _, _, operation in operations(document)} >= {"Create job", "List runs"}


def test_components_have_plain_names_and_all_are_used(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert [name for name in schemas if not re.fullmatch(r"[A-Z][A-Za-z]+", name)] == [], (
        "two types of one name: rename one"
    )
    referred = set(re.findall(r"#/components/(\w+)/([\w-]+)", str(document)))
    there = {
        (kind, name) for kind, named in document["components"].items() if kind != "securitySchemes" for name in named
    }
    assert referred == there


def test_tokens_use_the_bearer_scheme(document: dict[str, Any]) -> None:
    assert document["security"] == [{"bearerAuth": []}, {}]
    assert document["components"]["securitySchemes"]["bearerAuth"]["scheme"] == "bearer"


def test_instants_have_the_date_time_format(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["JobCreated"]["properties"]["scheduled_at"] == {"type": "string", "format": "date-time"}
    assert {"type": "string", "format": "date-time"} in schemas["RunListed"]["properties"]["finished_at"]["anyOf"]
    assert schemas["Backfilled"]["properties"]["ticks"]["items"] == {"type": "string", "format": "date-time"}
    assert "format" not in schemas["JobCreated"]["properties"]["status"]


HOOK_SECRET = "env:SHOP_SECRET"


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Config:
    """Sources in examples may name these places."""
    monkeypatch.setenv("SHOP_SECRET", "secret")
    return Config(secret_references="env:ORDERS_URL,env:SHOP_SECRET")


def signed(body: bytes) -> dict[str, str]:
    timestamp = str(int(time.time()))
    signature = signature_of("secret", message_id="m", timestamp=timestamp, body=body)
    return {"webhook-id": "m", "webhook-timestamp": timestamp, "webhook-signature": signature}


class World:
    """The resources that the examples refer to: a recurring job, runs that wait, run and have ended, and a failed
    workflow."""

    def __init__(self, client: httpx.AsyncClient, store: Store) -> None:
        self.client = client
        self.store = store

    async def made(self, path: str, **body: Any) -> str:
        answer = await self.client.post(path, json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def ended(self, run_id: str, state: RunState, queue: str) -> None:
        worker_id = UUID(int=1)
        claims = await claim_runs(self.store, worker_id, {queue: 10}, ["send_invoice", "shell", "simulate"])
        outcomes = [Outcome(claim.run_id, claim.token, state) for claim in claims if str(claim.run_id) == run_id]
        assert len(outcomes) == 1
        await self.store.outcomes.finish_runs(worker_id, outcomes)

    async def name_for(self, path: str) -> str:
        """The name of a resource that the operation can act on."""
        if "/groups/" in path:
            await finish(self.store, RunState.FAILED, error="no answer", task="send_late")
            answer = await self.client.get("/v1/dead-letters", params={"task": "send_late"})
            return str(answer.json()["items"][0]["fingerprint"])
        if path.startswith("/v1/sources/"):
            await self.source()
        if path.startswith("/v1/hooks/"):
            await self.store.sources.put_source("mail", Source(kind="webhook", secret=HOOK_SECRET, task="send_invoice"))
        # Only what is built in can be disabled.
        return "http" if path.endswith("able") or path == "/v1/tasks/{name}" else "mail"

    async def replaying(self, operation_id: str) -> str:
        dead = await finish(self.store, RunState.FAILED, error="no answer", task=f"send_{operation_id}")
        answer = await self.client.post("/v1/dead-letters/replay", json={"ids": [str(dead)], "canary": True})
        return str(answer.json()["replay_id"])

    async def alert_or_silence(self, operation_id: str) -> str:
        if operation_id.endswith("_alert"):
            return str((await opened_alert(self.store)).id)
        return await self.made("/v1/alert-silences", reason="a test", until="2099-01-01T00:00:00Z")

    async def source(self) -> None:
        source = Source(kind="redis", url="env:ORDERS_URL", topic="orders", task="send_invoice")
        await self.store.sources.put_source("mail", source)

    async def dead_message(self, _: str) -> str:
        await self.source()
        message = IncomingMessage(f"message {new_id()}", b"{}", {})

        async def bury(within: Transaction) -> int:
            return await self.store.sources.bury_messages(within, "mail", [(str(message.id), "no reason", message)])

        await self.store.database.in_transaction("bury", bury)
        (latest,) = await self.store.sources.list_dead_messages("mail", before=None, limit=1)
        return str(latest.id)

    async def reference_for(self, operation_id: str) -> str:
        """The id of a resource that the operation can act on."""
        if operation_id in ("drain_worker", "get_worker"):
            await self.store.workers.register_worker(UUID(int=1), "w", {"mail": 1}, ["send_invoice"])
            return str(UUID(int=1))
        if operation_id == "signal_run":
            return await self.made("/v1/jobs", signal={})
        if operation_id in ("rerun_run", "redrive_workflow", "cancel_workflow") or operation_id.startswith(
            "get_workflow"
        ):
            if operation_id != "rerun_run":
                steps = [{"key": "only", "task": "send_invoice", "retries": 0}]
                answer = await self.client.post("/v1/workflows", json={"steps": steps})
                run_id, step = answer.json()["id"], answer.json()["steps"]["only"]
                if operation_id == "redrive_workflow":
                    await self.ended(step, RunState.FAILED, "mail")
                return str(run_id)
            run_id = await self.made("/v1/jobs", task="send_invoice")
            await self.ended(run_id, RunState.SUCCEEDED, "mail")
            return run_id
        if operation_id.startswith("lab_"):
            return await self.made("/jobs", name="lab")
        if operation_id == "revoke_token":
            answer = await self.client.post("/v1/tokens", json={"name": "to-be-revoked", "role": "viewer"})
            return str(answer.json()["id"])
        if operation_id == "get_run_events":
            run_id = await self.made("/v1/jobs", task="send_invoice")
            await self.ended(run_id, RunState.SUCCEEDED, "mail")
            return run_id
        if operation_id.endswith("_run") or operation_id in (
            "cancel_job",
            "list_attempts",
            "list_checkpoints",
            "get_logs",
        ):
            return await self.made("/v1/jobs", task="send_invoice")
        return "nightly-report"


@pytest.fixture
async def world(client: httpx.AsyncClient, store: Store) -> World:
    await store.workers.announce_tasks({"workflow": "default", "wait": "default", "http": "default"})
    world = World(client, store)
    await world.made("/v1/jobs", name="nightly-report", task="send_invoice", cron="0 3 * * *")
    for name in ("mail", "beat", "queue-lag"):
        rule = {"condition": {"kind": "heartbeat_silent", "heartbeat": "mail"}}
        assert (await client.put(f"/v1/alert-rules/{name}", json=rule)).status_code == 200
    assert (await client.put("/v1/calendars/mail", json={"weekdays": ["SUN"]})).status_code == 200
    mail = {"kind": "email", "host": "mail.invalid", "from": "foliot@example.org", "to": ["ops@example.org"]}
    assert (await client.put("/v1/alert-channels/mail", json=mail)).status_code == 200
    return world


def body_examples(operation: dict[str, Any]) -> dict[str, Any]:
    contents = operation.get("requestBody", {}).get("content", {})
    return {
        name: example["value"] for content in contents.values() for name, example in content.get("examples", {}).items()
    }


def success_of(operation: dict[str, Any], body: object) -> str:
    """The status of a first request: repetitions and dry runs get 200 where it gets 201."""
    return (min if isinstance(body, dict) and body.get("dry_run") else max)(
        str(status) for status in operation["responses"] if status < "300"
    )


def check_schema(document: dict[str, Any], schema: dict[str, Any], value: object) -> None:
    root = {**schema, "components": document["components"]}
    jsonschema.Draft202012Validator(root, format_checker=jsonschema.FormatChecker()).validate(value)


async def test_every_operation_answers_as_documented_and_every_example_is_accepted(
    client: httpx.AsyncClient, document: dict[str, Any], world: World
) -> None:
    sent, failed = 0, []
    # Deletions come last.
    for method, path, operation in sorted(operations(document), key=lambda found: found[0] == "delete"):
        examples = body_examples(operation) or {"": None}
        for name, body in examples.items():
            find: Callable[[str], Awaitable[str]]
            find = world.replaying if "/replays/" in path else world.reference_for
            find = world.alert_or_silence if "/v1/alert" in path else find
            find = world.dead_message if "/dead-messages/" in path else find
            reference = await find(operation["operationId"]) if "{reference}" in path else ""
            named = await world.name_for(path) if "{name}" in path else ""
            url = path.replace("{reference}", reference).replace("{prefix}", "01a1f033").replace("{name}", named)
            assert "{" not in url, f"{path}: say in World what would be good there"
            # Without this the stream would not end.
            params = {"follow": "0"} if path in ("/v1/events", "/v1/pulse") else None
            if path == "/v1/workflows/grid":
                params = {"name": "books"}
            headers = signed(b"") if "/hooks/" in path else None
            answer = await client.request(method, url, json=body, params=params, headers=headers)
            sent += 1
            if str(answer.status_code) != success_of(operation, body):
                failed.append(f"{operation['operationId']} {name}: {answer.status_code} {answer.text}")
                continue
            content = operation["responses"][str(answer.status_code)].get("content")
            assert content is None or answer.headers["content-type"].partition(";")[0] in content, operation[
                "operationId"
            ]
            if content and "application/json" in content:
                check_schema(document, content["application/json"]["schema"], answer.json())
            if body is not None:
                check_schema(document, operation["requestBody"]["content"]["application/json"]["schema"], body)
    assert failed == []
    assert sent > len(list(operations(document)))


async def test_events_are_as_documented(client: httpx.AsyncClient, document: dict[str, Any], world: World) -> None:
    run_id = await world.made("/v1/jobs", task="send_invoice")
    await world.ended(run_id, RunState.SUCCEEDED, "mail")
    for path, kinds in (("/v1/runs/{reference}/events", {"run"}), ("/v1/runs/{reference}/logs", {"end"})):
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["text/event-stream"]["schema"]
        told = {one["properties"]["event"]["const"]: one for one in schema.get("anyOf", [schema])}
        params = {"follow": "1"} if path.endswith("/logs") else None
        answer = await client.get(path.replace("{reference}", run_id), params=params)
        events = [
            dict(line.split(": ", 1) for line in block.split("\n") if line[0] != ":")
            for block in answer.text.split("\n\n")
            if block
        ]
        seen = [event for event in events if event]
        assert {event["event"] for event in seen} == kinds
        for event in seen:
            check_schema(document, schema, event)
            check_schema(
                document, told[event["event"]]["properties"]["data"]["contentSchema"], json.loads(event["data"])
            )


def test_rules_between_fields_are_in_the_document(document: dict[str, Any]) -> None:
    """The document describes every rule by which these bodies are refused, and it allows the bodies that are
    accepted."""
    for name, good, bad in (
        ("JobRequest", {"task": "a", "delay_seconds": 1}, {"delay_seconds": 1}),
        ("JobRequest", {"command": "a", "payload": {}}, {"command": "a", "payload": {"b": 1}}),
        ("JobRequest", {"task": "a", "cron": "0 3 * * *", "timezone": "UTC"}, {"task": "a", "timezone": "UTC"}),
        ("JobRequest", {"task": "a", "cron": None, "every": "5m"}, {"task": "a", "cron": "0 3 * * *", "every": "5m"}),
        ("JobRequest", {"task": "a", "schedule": "2099-12-31T23:59:59Z"}, {"task": "a", "cron": "* * * * *",
            "delay_seconds": 1}),
        ("JobRequest", {"signal": {}}, {"signal": {}, "delay_seconds": 1}),
        ("JobRequest", {"task": "a", "priority": 509.0}, {"task": "a", "priority": 509.5}),
        ("JobRequest", {"task": "a", "payload": {"b": ["c"]}}, {"task": "a", "payload": {"b": ["\0"]}}),
        ("GroupRequest", {"name": "*"}, {"dry_run": True}),
        ("ReplayRequest", {"filter": {}}, {"filter": {}, "ids": [str(UUID(int=1))]}),
        ("CalendarDays", {"weekdays": ["SAT"]}, {"weekdays": []}),
        ("LabRequest", {"name": "a", "job_type": "delayed", "delay_seconds": 1}, {"name": "a", "delay_seconds": 1}),
        ("Map", {"items": []}, {"items": [], "result_of": "a"}),
        ("Backoff", {"kind": "list", "waits": [1]}, {"kind": "fixed", "waits": [1]}),
    ):  # fmt: skip
        schema = {"$ref": f"#/components/schemas/{name}"}
        check_schema(document, schema, good)
        with pytest.raises(jsonschema.ValidationError):
            check_schema(document, schema, bad)


async def test_problems_are_as_documented(client: httpx.AsyncClient, document: dict[str, Any]) -> None:
    problem = document["components"]["schemas"]["Problem"]
    for answer in (
        await client.get("/v1/jobs/none"), await client.post("/v1/jobs", json={}), await client.get("/v1/runs?limit=0"),
        await client.get("/v1/runs", headers={"host": "evil.example"}), await client.put("/v1/jobs"),
    ):  # fmt: skip
        assert answer.status_code >= 400
        check_schema(document, problem, answer.json())
        assert set(answer.json()) <= set(problem["properties"])
    check_schema(document, problem, problem["example"])


async def test_405_names_the_allowed_methods(client: httpx.AsyncClient) -> None:
    for path, methods in {
        "/v1/jobs": "GET, POST",
        "/v1/jobs/x": "DELETE, GET, PATCH",
        "/v1/jobs/batch": "POST",
        "/metrics": "GET",
    }.items():
        answer = await client.request("TRACE", path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)
        assert methods in answer.json()["detail"]
