"""Every route with every role and namespace: callers can do only what their role allows, and nothing in other
namespaces."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from starlette.responses import Response

from foliot.api.app import build_app
from foliot.api.security.audit_log import AuditLog
from foliot.api.security.permissions import PermissionRoute
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.roles import ALLOWED, Role
from foliot.store.store import Store
from foliot.submission.submitter import Submitter
from tests.api.security.route_permissions import EVERYWHERE, NONE, PERMISSIONS, WORK
from tests.support.alerts import opened_alert
from tests.support.runs import claim_runs
from tests.support.tokens import bearer, make_token

OURS, THEIRS = "ours", "theirs"
MAIL = {"kind": "email", "host": "mail.invalid", "from": "foliot@example.org", "to": ["ops@example.org"]}
# A text that must never be visible to others.
SECRET = "s3cret-of-theirs"
# The API description and the files of the web UI contain no user data.
PUBLIC = {
    *("/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc"),
    *("/", "/ui", "/ui/{page:path}", "/ui/assets/{name:path}", "/ui/THIRD_PARTY.txt"),
}
# Without these the streams would not end.
ENDING = {"/v1/events": "?follow=0", "/v1/pulse": "?follow=0"}


@pytest.fixture
async def app(store: Store, config: Config, clock: Clock, events: EventBus) -> AsyncIterator[FastAPI]:
    """The API as `foliot server` serves it."""
    for namespace in (OURS, THEIRS):
        inside = Namespace(namespace)
        await store.workers.announce_tasks(
            {inside.qualified(task): inside.qualified("mail") for task in ("send", "shell", "simulate")}
        )
    submitter = Submitter(store=store, clock=clock, events=events)
    audit = AuditLog(store=store, clock=clock, events=events)
    await submitter.start()
    await audit.start()
    yield build_app(store=store, submitter=submitter, audit=audit, config=config, clock=clock, is_open=False)
    await submitter.stop()
    await audit.stop()


def routes_of(app: FastAPI) -> list[tuple[str, PermissionRoute]]:
    return [
        (method, route)
        for route in app.routes
        if isinstance(route, PermissionRoute)
        for method in sorted(route.methods or ())
    ]


def test_a_route_without_a_declared_permission_cannot_be_built() -> None:
    async def anybody() -> Response:
        return Response()

    with pytest.raises(TypeError, match="does not say what it requires"):
        APIRouter(route_class=PermissionRoute).add_api_route("/anything", anybody)


def test_every_route_requires_the_right_permission(app: FastAPI) -> None:
    unguarded = {getattr(route, "path", "") for route in app.routes if not isinstance(route, PermissionRoute)}
    assert unguarded <= PUBLIC
    declared = {(method, route.path): route.requirement for method, route in routes_of(app)}
    assert {key: requirement.permission for key, requirement in declared.items()} == PERMISSIONS
    assert {key for key, requirement in declared.items() if requirement.everywhere} == EVERYWHERE
    changing = {key for key, requirement in declared.items() if not requirement.is_reading}
    # Attempts are recorded with their runs.
    recorded = {key for key, permission in PERMISSIONS.items() if permission is not WORK}
    assert changing == {key for key in recorded if key[0] != "GET" and not key[1].endswith(("/check", "/preview"))}


async def test_every_route_for_every_role(app: FastAPI, client: httpx.AsyncClient, store: Store) -> None:
    tokens = {role: await make_token(store, role, OURS) for role in Role}
    over_all = {role: await make_token(store, role) for role in Role}
    for method, route in routes_of(app):
        path = route.path.format(reference=str(new_id()), name="nothing", prefix="01a1f033") + ENDING.get(
            route.path, ""
        )
        expected = PERMISSIONS[method, route.path]
        answer = await client.request(method, path)
        assert (answer.status_code == 401) == (expected is not NONE), (method, path, answer.text)
        if answer.status_code == 401:
            assert answer.json()["code"] == "unauthenticated"
            assert answer.headers["www-authenticate"].startswith("Bearer")
        for role in Role:
            is_allowed = expected is NONE or expected in ALLOWED[role]
            here = await client.request(method, path, headers=bearer(tokens[role]))
            is_within_reach = is_allowed and (method, route.path) not in EVERYWHERE
            assert (here.status_code == 403) == (not is_within_reach), (method, path, role, here.text)
            everywhere = await client.request(method, path, headers=bearer(over_all[role]))
            assert (everywhere.status_code == 403) == (not is_allowed), (method, path, role, everywhere.text)
            assert here.status_code != 401
            assert here.status_code < 500


async def test_other_namespaces_are_neither_visible_nor_changed(
    app: FastAPI, client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    known = await plant(client, store, sql)
    before = await state_of(sql, known["workflow"])
    # With all permissions in our own namespace.
    us = bearer(await make_token(store, Role.ADMIN, OURS))
    seen = []
    # Routes with ids first: later our queues have names that equal their ids.
    for method, route in sorted(routes_of(app), key=lambda found: "{reference}" not in found[1].path):
        parameters = re.findall(r"{(\w+)}", route.path)
        for value in known["references"] if parameters else [""]:
            path = route.path.format(reference=value, name=value, prefix=value) + ENDING.get(route.path, "")
            for body in bodies_for(method, route.path, known):
                answer = await client.request(
                    method, path, headers=us | {"Content-Type": "application/json"}, content=body
                )
                assert SECRET not in answer.text, (method, path, answer.text)
                assert answer.status_code < 500, (method, path, answer.text)
                seen.append((method, route.path, answer.status_code))
                if "{reference}" in route.path:
                    assert answer.status_code in (403, 404, 422), (method, path, answer.status_code, answer.text)
        for query in (
            "?limit=200",
            "?since=7d",
            "?flat=1&replayed=1",
            f"?parent={known['workflow']}",
            f"?job={known['job']}",
        ):
            if method == "GET" and not parameters:
                path = route.path + query + ENDING.get(route.path, "").replace("?", "&")
                assert SECRET not in (await client.get(path, headers=us)).text
    assert await state_of(sql, known["workflow"]) == before
    assert len({(method, path) for method, path, _ in seen}) == len(PERMISSIONS)
    # The resource still exists for its owners.
    them = bearer(known["token"])
    for path in (
        f"/v1/runs/{known['run']}",
        f"/v1/jobs/{known['job']}",
        f"/v1/workflows/{known['workflow']}",
        "/v1/runs",
        "/v1/jobs",
    ):
        assert SECRET in (await client.get(path, headers=them)).text, path
    theirs = (await client.get("/v1/queues", headers=them)).json()["items"]
    assert [queue["name"] for queue in theirs] == ["mail"]
    assert theirs[0]["paused"]["reason"] == SECRET


async def plant(client: httpx.AsyncClient, store: Store, sql: Any) -> dict[str, Any]:
    """Creates one of everything in their namespace."""
    token = await make_token(store, Role.ADMIN, THEIRS, name="theirs")
    them = bearer(token)

    async def post(path: str, **body: Any) -> dict[str, Any]:
        answer = await client.post(path, json=body, headers=them)
        assert answer.status_code in (200, 201), answer.text
        found: dict[str, Any] = answer.json()
        return found

    run = await post(
        "/v1/jobs", task="send", payload={"to": SECRET}, name=SECRET, unique={"key": "k"}, delay_seconds=3600
    )
    dead = await post("/v1/jobs", task="send", payload={"to": SECRET})
    inside, worker_id = Namespace(THEIRS), new_id()
    await store.workers.register_worker(worker_id, SECRET, {inside.qualified("mail"): 1}, [inside.qualified("send")])
    (claim,) = await claim_runs(store, worker_id, {inside.qualified("mail"): 1}, [inside.qualified("send")])
    assert str(claim.run_id) == dead["id"]
    await sql.execute(
        "with d as (delete from foliot.runs where id = $1 returning *) insert into foliot.history "
        "(id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, worker_id, state, queue, "
        "task, name, payload, error) select id, created_at, due_at, started_at, clock_timestamp(), token, attempt, "
        "lost, priority, worker_id, 'failed', queue, task, name, payload, jsonb_build_object('kind', 'Error', "
        "'message', $2::text) from d",
        claim.run_id, SECRET,
    )  # fmt: skip
    job = await post("/v1/jobs", task="send", cron="0 3 * * *", name="nightly", payload={"to": SECRET}, calendar=None)
    workflow = await post("/v1/workflows", name=SECRET, steps=[{"key": "a", "task": "send", "payload": {"to": SECRET}}])
    await client.put("/v1/calendars/holidays", json={"dates": ["2030-01-01"]}, headers=them)
    await client.put("/v1/alert-channels/holidays", json=MAIL | {"to": [f"{SECRET}@example.org"]}, headers=them)
    beat = {"condition": {"kind": "heartbeat_silent", "heartbeat": "mail"}, "description": SECRET}
    assert (await client.put("/v1/alert-rules/mail", json=beat, headers=them)).status_code == 200
    silence = await post("/v1/alert-silences", reason=SECRET, until="2099-01-01T00:00:00Z")
    alert = await opened_alert(store, THEIRS, SECRET)
    await post("/v1/queues/mail/pause", reason=SECRET)
    await post("/v1/tasks/send/pause", reason=SECRET)
    token_id = token.split("_")[1]
    references = [
        run["id"], dead["id"], job["id"], "nightly", workflow["id"], workflow["steps"]["a"], str(worker_id), token_id,
        silence["id"], str(alert.id),
        "theirs",
        "theirs/nightly", "theirs/mail", "holidays", "theirs%2Fholidays", "theirs%2Fmail", "theirs%2Fnightly",
    ]  # fmt: skip
    return {
        "references": references, "run": run["id"], "dead": dead["id"], "job": job["id"], "workflow": workflow["id"],
        "token": token, "worker": str(worker_id),
    }  # fmt: skip


def bodies_for(method: str, path: str, known: dict[str, Any]) -> list[bytes]:
    """Bodies with which the request would succeed if the resource were ours."""
    if method in ("GET", "DELETE"):
        return [b""]
    now = datetime.now(UTC)
    given: dict[str, list[dict[str, Any]]] = {
        "/v1/jobs": [{"task": "send", "dependencies": [known["run"]]}, {"task": "send", "dependencies": ["nightly"]}],
        "/v1/jobs/batch": [{"jobs": [{"task": "send", "unique": {"key": "k", "on_conflict": "replace"}}]}],
        "/v1/jobs/{reference}": [{"priority": 9}],
        "/v1/jobs/{reference}/backfill": [{"from": (now - timedelta(days=3)).isoformat(), "to": now.isoformat()}],
        "/v1/jobs/pause": [{"name": "*"}, {"queue": "mail"}],
        "/v1/jobs/resume": [{"name": "*"}],
        "/v1/jobs/trigger": [{"name": "*", "expected": 1}, {"name": "*", "dry_run": True}],
        "/v1/jobs/delete": [{"name": "*", "expected": 1}, {"name": "*", "dry_run": True}],
        "/v1/runs/cancel": [{"all": True, "expected": 1000}, {"all": True, "dry_run": True}],
        "/v1/runs/rerun": [{"all": True, "expected": 1000}, {"all": True, "dry_run": True}],
        "/v1/dead-letters/replay": [
            {"ids": [known["dead"]]},
            {"filter": {}},
            {"filter": {"queue": "mail"}, "again": True},
            {"ids": [known["dead"]], "canary": True},
        ],
        "/v1/queues/{name}": [{"max_running": 7}],
        "/v1/dead-letters/groups/{name}/note": [{"note": "ours"}],
        "/v1/workers/drain": [{"labels": {"place": "theirs"}}],
        # Runs and workers of theirs, by their ids.
        "/v1/worker/beat": [{"worker_id": known["worker"], "held": []}],
        "/v1/worker/claim": [{"worker_id": known["worker"], "slots": {"mail": 1}, "tasks": ["send"], "held": []}],
        "/v1/worker/register": [{"worker_id": known["worker"], "name": "w", "queues": {"mail": 1}, "tasks": {}}],
        "/v1/worker/outcomes": [
            {
                "worker_id": known["worker"],
                "outcomes": [{"run_id": known["run"], "token": 1, "state": "succeeded"}],
            }
        ],
        "/v1/worker/logs": [{"worker_id": known["worker"], "ended": [[known["dead"], 1]]}],
        "/v1/worker/leave": [{"worker_id": known["worker"]}],
        "/v1/worker/upstream": [{"worker_id": known["worker"], "attempts": [[known["run"], 1]]}],
        "/v1/worker/checkpoints/open": [{"worker_id": known["worker"], "run_id": known["dead"], "token": 1}],
        "/v1/worker/expand": [
            {
                "worker_id": known["worker"],
                "run_id": known["run"],
                "token": 1,
                "kind": "workflow",
                "payload": {"steps": [{"key": "a", "task": "send"}]},
            }
        ],
        "/v1/calendars/{name}": [{"dates": ["2031-01-01"]}],
        "/v1/calendars/{name}/preview": [{"dates": ["2031-01-01"]}],
        "/v1/alert-channels/{name}": [MAIL],
        "/v1/alert-rules/{name}": [{"condition": {"kind": "heartbeat_silent", "heartbeat": "mine"}}],
        "/v1/alert-silences": [{"rule": "mail", "reason": "mine", "until": "2099-01-01T00:00:00Z"}],
        "/v1/tokens": [
            {"name": "more", "role": "viewer", "namespace": THEIRS},
            {"name": "all", "role": "viewer", "namespace": "*"},
        ],
        "/v1/workflows": [{"steps": [{"key": "a", "task": "send"}]}],
        "/jobs": [{"name": "lab"}],
    }
    return [json.dumps(body).encode() for body in given.get(path, [{}])]


async def state_of(sql: Any, workflow_id: str) -> dict[str, Any]:
    """Everything that belongs to them."""
    queries = {
        "runs": "select * from foliot.runs where queue like 'theirs/%' order by id",
        "history": "select * from foliot.history where queue like 'theirs/%' order by id",
        "jobs": "select * from foliot.jobs where queue like 'theirs/%' order by id",
        "pauses": "select * from foliot.pauses where name like 'theirs/%' or kind = 'everything' order by kind, name",
        "queues": "select * from foliot.queues where name like 'theirs/%'",
        "calendars": "select * from foliot.calendars where name like 'theirs/%'",
        "alert_channels": "select * from foliot.alert_channels where name like 'theirs/%'",
        "alert_rules": "select * from foliot.alert_rules where name like 'theirs/%'",
        "alerts": "select * from foliot.alerts where namespace = 'theirs' order by id",
        "silences": "select * from foliot.alert_silences where namespace = 'theirs'",
        "heartbeats": "select * from foliot.heartbeats where name like 'theirs/%'",
        "tokens": "select id, name, role, revoked_at from foliot.tokens where namespace = 'theirs' order by id",
        "workers": "select id, draining_at from foliot.workers order by id",
        "parents": f"select * from foliot.parents where id = '{UUID(workflow_id)}'",
    }
    return {name: [tuple(row) for row in await sql.fetch(query)] for name, query in queries.items()}


async def test_equal_names_and_keys_in_two_namespaces_are_independent(
    app: FastAPI, client: httpx.AsyncClient, store: Store
) -> None:
    tokens = {namespace: bearer(await make_token(store, Role.ADMIN, namespace)) for namespace in (OURS, THEIRS)}
    jobs = {}
    for namespace, token in tokens.items():
        recurring = await client.post(
            "/v1/jobs", json={"task": "send", "every": "1h", "name": "nightly"}, headers=token
        )
        assert recurring.status_code == 201, recurring.text
        unique = {"task": "send", "unique": {"key": "k"}, "concurrency": {"key": "tenant", "limit": 1}}
        single = await client.post("/v1/jobs", json=unique, headers=token | {"Idempotency-Key": "same"})
        assert single.status_code == 201, single.text
        jobs[namespace] = recurring.json()
        shown = (await client.get(f"/v1/runs/{single.json()['id']}", headers=token)).json()
        assert (shown["queue"], shown["task"], shown["unique_key"]) == ("mail", "send", "k")
        assert shown["options"]["concurrency"]["key"] == "tenant"
        assert (await client.patch("/v1/queues/mail", json={"max_running": 3}, headers=token)).json()["name"] == "mail"
    assert jobs[OURS]["id"] != jobs[THEIRS]["id"]
    assert (jobs[OURS]["name"], jobs[OURS]["queue"], jobs[OURS]["task"]) == ("nightly", "mail", "send")
    assert (await client.delete("/v1/jobs/nightly", headers=tokens[OURS])).status_code == 204
    assert (await client.get("/v1/jobs/nightly", headers=tokens[THEIRS])).status_code == 200


async def test_a_token_for_all_namespaces_selects_one_by_header(
    app: FastAPI, client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    over_all = bearer(await make_token(store))
    made = await client.post("/v1/jobs", json={"task": "send"}, headers=over_all | {"Foliot-Namespace": OURS})
    assert made.status_code == 201, made.text
    assert (await client.get(f"/v1/runs/{made.json()['id']}", headers=over_all)).status_code == 404
    found = await client.get(f"/v1/runs/{made.json()['id']}", headers=over_all | {"Foliot-Namespace": OURS})
    assert found.status_code == 200
    bad = await client.get("/v1/runs", headers=over_all | {"Foliot-Namespace": "No Such/Name"})
    assert (bad.status_code, bad.json()["field"]) == (422, "Foliot-Namespace")
    one = bearer(await make_token(store, Role.ADMIN, OURS, name="one"))
    assert (await client.get("/v1/runs", headers=one | {"Foliot-Namespace": THEIRS})).status_code == 403
    refused = await sql.fetchrow("select actor, namespace, status from foliot.audit order by at desc limit 1")
    assert tuple(refused) == ("one", OURS, 403)
    assert (await client.get("/v1/runs", headers=one | {"Foliot-Namespace": OURS})).status_code == 200
