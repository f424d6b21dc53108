"""A disabled built-in task does not run, however its job was submitted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import msgspec
import pytest
from fastapi import FastAPI

import foliot
from foliot.api.app import build_app
from foliot.api.security.audit_log import AuditLog
from foliot.clock import Clock
from foliot.config import BUILT_IN_TASKS, Config, load
from foliot.errors import ConfigurationError, TaskDisabled
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.roles import Role
from foliot.model.run import NewRun
from foliot.model.states import TERMINAL
from foliot.sdk.app import App
from foliot.store.store import Store
from foliot.submission.submitter import Submitter
from tests.support.tokens import bearer, make_token
from tests.support.waiting import until
from tests.support.workers import QUICK, ended, submit, worker_node

COMMAND = "touch {}"
TASKS = {"send_invoice": "default", **dict.fromkeys(BUILT_IN_TASKS, "default")}


@pytest.fixture
async def app(store: Store, config: Config, clock: Clock, events: EventBus) -> AsyncIterator[FastAPI]:
    for namespace in ("", "team-a/"):
        await store.workers.announce_tasks({namespace + task: namespace + queue for task, queue in TASKS.items()})
    submitter = Submitter(store=store, clock=clock, events=events)
    audit = AuditLog(store=store, clock=clock, events=events)
    await submitter.start()
    await audit.start()
    yield build_app(store=store, submitter=submitter, config=config, clock=clock, audit=audit, is_open=False)
    await audit.stop()
    await submitter.stop()


@pytest.fixture
async def client(app: FastAPI, store: Store) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the token of an administrator of the installation."""
    async with caller(app, await make_token(store, role=Role.ADMIN, namespace="*")) as client:
        yield client


def caller(app: FastAPI, token: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost:8000", headers=bearer(token)
    )


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    """A file that exists if a command has run."""
    return tmp_path / "witness"


async def disable(client: httpx.AsyncClient, task: str = "shell", **how: Any) -> None:
    answer = await client.post(f"/v1/tasks/{task}/disable", json=how)
    assert answer.status_code == 200, answer.text


# --- at submission

STEP = {"key": "a", "command": "true"}
WAYS_IN: list[tuple[str, Any, str]] = [
    ("/v1/jobs", {"command": "true"}, "task"),
    ("/v1/jobs", {"task": "shell", "payload": {"argv": ["true"]}}, "task"),
    ("/v1/jobs", {"job_type": "shell", "payload": {"argv": ["true"]}}, "task"),
    ("/v1/jobs", {"command": "true", "delay_seconds": 60}, "task"),
    ("/v1/jobs", {"command": "true", "idempotency_key": "k"}, "task"),
    ("/v1/jobs", {"command": "true", "unique": {"key": "k", "on_conflict": "replace"}}, "task"),
    ("/v1/jobs", {"command": "true", "name": "n", "cron": "* * * * *"}, "task"),
    ("/v1/jobs", {"command": "true", "name": "n", "every": "5m"}, "task"),
    ("/v1/jobs/batch", {"jobs": [{"task": "send_invoice"}, {"command": "true"}]}, "jobs[1].task"),
    ("/v1/jobs/batch", [{"command": "true"}], "[0].task"),
    ("/v1/workflows", {"steps": [STEP]}, "steps[0].task"),
    ("/v1/workflows", {"name": "n", "cron": "0 0 * * *", "steps": [STEP]}, "steps[0].task"),
    ("/v1/jobs", {"task": "workflow", "payload": {"steps": [STEP]}}, "payload.steps[0].task"),
    (
        "/v1/workflows",
        {"steps": [{"key": "outer", "task": "workflow", "payload": {"steps": [STEP]}}]},
        "steps[0].payload.steps[0].task",
    ),
    ("/v1/workflows", {"steps": [{**STEP, "map": {"items": ["1"], "item_name": "stdin"}}]}, "steps[0].task"),
    (
        "/v1/jobs",
        {"task": "map", "payload": {"task": "shell", "map": {"items": ["true"], "item_name": "command"}}},
        "task",
    ),
    (
        "/v1/jobs",
        {"task": "map", "payload": {"command": "true", "map": {"items": ["1"], "item_name": "stdin"}}},
        "task",
    ),
]


@pytest.mark.parametrize(("path", "body", "field"), WAYS_IN)
async def test_a_disabled_task_is_refused_at_submission(
    client: httpx.AsyncClient, sql: Any, path: str, body: Any, field: str
) -> None:
    await disable(client)
    answer = await client.post(path, json=body)
    assert (answer.status_code, answer.json()["code"], answer.json().get("field")) == (403, "task_disabled", field), (
        answer.text
    )
    assert "'shell' is disabled in the namespace 'default'" in answer.json()["detail"]
    assert (
        await sql.fetchval("select count(*) from foliot.runs")
        == await sql.fetchval("select count(*) from foliot.jobs")
        == 0
    )
    assert (await client.post("/v1/tasks/shell/enable")).json() == {"items": []}
    again = await client.post(path, json=body)
    assert again.status_code == 201, again.text


@pytest.mark.parametrize("task", sorted(BUILT_IN_TASKS))
async def test_every_built_in_task_can_be_disabled(client: httpx.AsyncClient, task: str) -> None:
    await disable(client, task)
    answer = await client.post(
        "/v1/jobs", json={"task": task, "payload": {"steps": [{"key": "a", "task": "send_invoice"}]}}
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "task_disabled"), answer.text
    workflow = {"steps": [{"key": "a", "task": "send_invoice", "map": {"items": [1]}}]}
    answer = await client.post("/v1/workflows", json=workflow)
    assert answer.status_code == (403 if task in ("workflow", "map") else 201), answer.text


async def test_existing_jobs_can_not_be_triggered_or_rerun(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    job = (await client.post("/v1/jobs", json={"command": "true", "name": "n", "every": "1h"})).json()["id"]
    run = (await client.post("/v1/jobs", json={"command": "true", "delay_seconds": 60})).json()["id"]
    workflow = (await client.post("/v1/workflows", json={"steps": [STEP]})).json()
    await client.post(f"/v1/runs/{run}/cancel", json={})
    await client.post(f"/v1/workflows/{workflow['id']}/cancel", json={})
    await disable(client)
    now = datetime.now(UTC)
    past = {"from": (now - timedelta(hours=3)).isoformat(), "to": (now - timedelta(minutes=1)).isoformat()}
    live = await sql.fetchval("select count(*) from foliot.runs")
    for path, body in (
        (f"/v1/jobs/{job}/trigger", None),
        (f"/v1/jobs/{job}/backfill", past),
        (f"/v1/runs/{run}/rerun", {}),
        (f"/v1/workflows/{workflow['id']}/redrive", None),
    ):
        answer = await client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "task_disabled"), (path, answer.text)
    assert await sql.fetchval("select count(*) from foliot.runs") == live


async def test_the_sql_function_refuses_a_disabled_task(client: httpx.AsyncClient, sql: Any) -> None:
    await disable(client)
    with pytest.raises(
        asyncpg.InsufficientPrivilegeError, match="task: 'shell' is disabled in the namespace 'default'"
    ):
        await sql.fetchval("""select foliot.submit('{"task": "shell", "payload": {"command": "true"}}')""")
    assert await sql.fetchval(
        """select foliot.submit('{"task": "shell", "namespace": "team-a", "payload": {"command": "true"}}')"""
    )
    assert await sql.fetchval("""select foliot.submit('{"task": "send_invoice"}')""")
    await disable(client, everywhere=True)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="disabled in the namespace 'team-a'"):
        await sql.fetchval(
            """select foliot.submit('{"task": "shell", "namespace": "team-a", "payload": {"command": "true"}}')"""
        )


async def test_a_direct_client_refuses_a_disabled_task(client: httpx.AsyncClient, database_url: str) -> None:
    await disable(client)
    with foliot.connect(database_url) as direct:
        with pytest.raises(TaskDisabled):
            direct.submit("shell", {"command": "true"})
        with pytest.raises(TaskDisabled):
            direct.submit_many("shell", [{"command": "true"}] * 3)
        with pytest.raises(TaskDisabled):
            direct.submit("map", {"task": "shell", "map": {"items": [1]}})
        assert direct.submit("send_invoice").id


# --- at execution: whatever was stored before, or past all this


@pytest.mark.parametrize("everywhere", [False, True])
async def test_a_stored_run_fails_without_running_its_command(
    client: httpx.AsyncClient, store: Store, witness: Path, everywhere: bool
) -> None:
    await disable(client, everywhere=everywhere)
    payload = msgspec.json.encode({"command": COMMAND.format(witness)}).decode()
    async with worker_node(store, App()):
        runs = [await submit(store, "shell", payload=payload) for _ in range(3)]
        for run in runs:
            view = await ended(store, run)
            assert (view.state, view.error["kind"], view.attempt) == ("failed", "TaskDisabled", 1)
        assert not witness.exists()
        assert (await client.post("/v1/tasks/shell/enable", json={"everywhere": everywhere})).status_code == 200
        assert (await ended(store, await submit(store, "shell", payload=payload))).state == "succeeded"
        assert witness.exists()


async def test_ticks_steps_items_and_retries_fail_too(
    client: httpx.AsyncClient, store: Store, sql: Any, witness: Path
) -> None:
    """Everything here is stored before the task is disabled, and becomes a run only afterwards."""
    command = COMMAND.format(witness)
    later, waits = {"delay_seconds": 1}, {"key": "first", "task": "wait", "signal": {"timeout_seconds": 1}}
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("/v1/workflows", {"steps": [waits, {"key": "then", "command": command, "after": ["first"],
            "rule": "all_done"}]}),
        ("/v1/jobs", {"task": "workflow", "payload": {"steps": [{"key": "a", "command": command}]}, **later}),
        ("/v1/jobs", {"task": "map", "payload": {"command": command, "map": {"items": ["1", "2"],
            "item_name": "stdin"}}, **later}),
        ("/v1/jobs", {"command": command, **later}),
    ]  # fmt: skip
    made = []
    for path, body in bodies:
        answer = await client.post(path, json=body)
        assert answer.status_code == 201, answer.text
        made.append(NewRun(id=msgspec.convert(answer.json()["id"], type(new_id())), task="", queue=""))
    await disable(client)
    await sql.execute(
        "update foliot.runs set due_at = now() - interval '1 second' where state = 'scheduled' or held_by = 'signal'"
    )
    async with worker_node(store, App()):
        await store.due_runs.promote_due_runs(100)
        await store.signals.time_out_signals(100)

        async def look() -> bool:
            views = [await store.runs.get_run(run.id) for run in made]
            return all(view is not None and view.state in TERMINAL for view in views)

        await until(look)
    refused = await sql.fetch("select state, error ->> 'kind' as kind from foliot.history where task = 'shell'")
    assert {tuple(row) for row in refused} == {("failed", "TaskDisabled")}
    assert len(refused) >= 4
    assert not witness.exists()


async def test_notifications_are_not_sent_while_http_is_disabled(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    job = {"task": "simulate", "notify": {"url": "http://127.0.0.1:9/", "on": ["completed"]}}
    await disable(client, "http")
    assert (await client.post("/v1/jobs", json=job)).status_code == 201
    async with worker_node(store, App()):

        async def look() -> str | None:
            kind: str | None = await sql.fetchval("select error ->> 'kind' from foliot.history where task = 'http'")
            return kind

        assert await until(look) == "TaskDisabled"


# --- by whom


async def test_disabling_applies_to_one_namespace_or_everywhere(
    app: FastAPI, client: httpx.AsyncClient, store: Store
) -> None:
    admin = await make_token(store, role=Role.ADMIN, namespace="team-a")
    async with caller(app, admin) as team:
        await disable(team)
        assert (await team.post("/v1/jobs", json={"command": "true"})).status_code == 403
        assert (await client.post("/v1/jobs", json={"command": "true"})).status_code == 201
        assert (await client.get("/v1/disabled-tasks")).json() == {"items": []}
        (shown,) = (await team.get("/v1/disabled-tasks")).json()["items"]
        assert (shown["task"], shown["everywhere"], shown["imposed"]) == ("shell", False, False)
        assert (await team.post("/v1/tasks/shell/enable")).status_code == 200
        await disable(client, everywhere=True, reason="no commands here")
        assert (await team.post("/v1/jobs", json={"command": "true"})).status_code == 403
        assert (await client.post("/v1/jobs", json={"command": "true"})).status_code == 403
        (shown,) = (await team.get("/v1/disabled-tasks")).json()["items"]
        assert (shown["everywhere"], shown["imposed"], shown["reason"]) == (True, True, "no commands here")


async def test_only_a_token_for_all_namespaces_can_enable_everywhere(
    app: FastAPI, client: httpx.AsyncClient, store: Store
) -> None:
    admin = await make_token(store, role=Role.ADMIN, namespace="team-a")
    await client.post("/v1/tasks/shell/disable", json={}, headers={"Foliot-Namespace": "team-a"})
    async with caller(app, admin) as team:
        # Disabling it again changes nothing.
        await disable(team, reason="ours")
        for body in ({}, {"everywhere": True}):
            assert (await team.post("/v1/tasks/shell/enable", json=body)).status_code == 403
        assert (await team.post("/v1/tasks/shell/disable", json={"everywhere": True})).status_code == 403
        assert (await team.post("/v1/jobs", json={"command": "true"})).status_code == 403
        assert (await client.post("/v1/tasks/shell/enable", headers={"Foliot-Namespace": "team-a"})).status_code == 200
        assert (await team.post("/v1/jobs", json={"command": "true"})).status_code == 201


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
async def test_disabling_requires_an_administrator(app: FastAPI, store: Store, role: Role) -> None:
    async with caller(app, await make_token(store, role=role, namespace="*")) as other:
        for action in ("disable", "enable"):
            assert (await other.post(f"/v1/tasks/shell/{action}")).status_code == 403
        assert (await other.get("/v1/disabled-tasks")).status_code == 200


async def test_disabling_and_refusals_are_in_the_audit_log(client: httpx.AsyncClient, sql: Any) -> None:
    await disable(client)
    await client.post("/v1/jobs", json={"command": "true"})
    await client.post("/v1/tasks/shell/enable")
    rows = await sql.fetch("select action, path, status, code from foliot.audit order by at, id")
    assert [tuple(row) for row in rows] == [
        ("disable_task", "/v1/tasks/shell/disable", 200, None),
        ("create_job", "/v1/jobs", 403, "task_disabled"),
        ("enable_task", "/v1/tasks/shell/enable", 200, None),
    ]


@pytest.mark.parametrize("name", ["shel", "send_invoice", "..", "SHELL", "%00", "x" * 300])
async def test_an_unknown_built_in_task_is_refused(client: httpx.AsyncClient, name: str) -> None:
    for action in ("disable", "enable"):
        assert (await client.post(f"/v1/tasks/{name}/{action}")).status_code == 404


# --- by a worker


async def test_a_worker_neither_announces_nor_claims_tasks_that_it_disabled(
    store: Store, sql: Any, witness: Path
) -> None:
    config = msgspec.structs.replace(QUICK, disabled_tasks="shell, http")
    async with worker_node(store, App(), config=config):
        announced = {row[0] for row in await sql.fetch("select name from foliot.tasks")}
        assert announced == BUILT_IN_TASKS - {"shell", "http"}
        (worker,) = await sql.fetch("select tasks from foliot.workers")
        assert set(worker[0]) == announced
        await store.workers.announce_tasks({"shell": "default"})
        left = await submit(store, "shell", payload=msgspec.json.encode({"command": COMMAND.format(witness)}).decode())
        assert (await ended(store, await submit(store, "simulate"))).state == "succeeded"
        view = await store.runs.get_run(left.id)
        assert view is not None
        assert (view.state, witness.exists()) == ("ready", False)
        # Another worker claims it.
        async with worker_node(store, App()):
            assert (await ended(store, left)).state == "succeeded"
    assert witness.exists()


def test_the_setting_is_a_list_or_comma_separated_and_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "foliot.toml"
    file.write_text('disabled_tasks = ["shell", "http"]\n')
    assert load(environment={"FOLIOT_CONFIG": str(file)}).tasks_disabled() == {"shell", "http"}
    assert load(environment={"FOLIOT_DISABLED_TASKS": " shell ,http,"}).tasks_disabled() == {"shell", "http"}
    with pytest.raises(ConfigurationError, match="'shel' is not a built-in task, did you mean 'shell'"):
        load(environment={"FOLIOT_DISABLED_TASKS": "shel"})
