"""Processes with access control: tokens, TLS, and workers of one namespace."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import httpx
import pytest

from foliot.model.roles import Role
from foliot.model.tokens import token_id_of
from foliot.store.store import Store
from tests.support.api import Api, api_of
from tests.support.certificates import Authority
from tests.support.processes import FoliotProcess
from tests.support.tokens import bearer, make_token
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

APP = "tests.cluster.apps:app"


def environment(database_url: str, **settings: str) -> dict[str, str]:
    return {
        "FOLIOT_DATABASE_URL": database_url,
        "FOLIOT_PORT": "0",
        **{f"FOLIOT_{name.upper()}": value for name, value in settings.items()},
    }


async def test_a_server_needs_a_token_and_the_first_one_is_created_in_the_database(database_url: str) -> None:
    around = environment(database_url)
    async with FoliotProcess("server", environment=around) as server:
        assert await server.wait() == 2
        assert "no token exists" in server.lines[-1]
    command = ("token", "create", "root", "--role", "admin", "--everywhere", "--database")
    async with FoliotProcess(*command, environment=around) as made:
        assert await made.wait() == 0
        token = made.lines[-1]
    async with FoliotProcess("server", environment=around) as server:
        address = (await server.event("ProcessStarted", part="server"))["address"]
        async with httpx.AsyncClient(base_url=address, timeout=20) as client:
            assert (await client.get("/v1/runs")).status_code == 401
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/v1/runs", headers=bearer(token))).status_code == 200
            # Foreign host names are allowed here: a caller with a token may use any name.
            assert (
                await client.get("/v1/runs", headers=bearer(token) | {"Host": "jobs.example.com"})
            ).status_code == 200
        for arguments, said in (
            (("token",), "root"),
            (("token", "create", "ci", "--role", "submitter", "--expires", "30d"), "foliot_"),
            (("token", "revoke", "ci"), "ci was revoked"),
            (("audit",), "revoke_token"),
        ):
            async with FoliotProcess(*arguments, environment={"FOLIOT_URL": address, "FOLIOT_TOKEN": token}) as ran:
                assert await ran.wait() == 0, ran.lines
                assert any(said in line for line in ran.lines), ran.lines
        async with FoliotProcess("runs", environment={"FOLIOT_URL": address}) as ran:
            assert await ran.wait() == 1
            assert "say who you are" in ran.lines[-1]
    async with FoliotProcess(*command, environment=around) as again:
        assert await again.wait() == 1
        assert "a token named 'root' already exists" in again.lines[-1]


async def test_up_on_a_public_address_requires_tokens(database_url: str, store: Store, tmp_path: Path) -> None:
    around = environment(database_url, workers="0")
    arguments = ("up", "--host", "0.0.0.0", "--data", str(tmp_path))
    async with FoliotProcess(*arguments, environment=around) as refused:
        assert await refused.wait() == 2
        assert "tokens must not travel there unencrypted" in refused.lines[-1]
    async with FoliotProcess(*arguments, "--plain-http", environment=around) as refused:
        assert await refused.wait() == 2
        assert "no token exists" in refused.lines[-1]
    token = await make_token(store)
    async with FoliotProcess(*arguments, "--plain-http", environment=around) as up:
        port = (await up.event("ProcessStarted", part="up"))["address"].rpartition(":")[2]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            assert (await client.get("/v1/runs")).status_code == 401
            assert (await client.get("/v1/runs", headers=bearer(token))).status_code == 200


async def test_a_token_can_be_created_before_the_first_start(tmp_path: Path) -> None:
    create = ("token", "create", "root", "--role", "admin", "--everywhere", "--database")
    nothing = {"FOLIOT_DATA": str(tmp_path / "other")}
    async with FoliotProcess(*create, environment=nothing) as refused:
        assert await refused.wait() == 2
        assert "no database" in refused.lines[-1]
        assert not (tmp_path / "other").exists()
    data = ("--data", str(tmp_path / "data"))
    async with FoliotProcess(*create, *data) as created:
        assert await created.wait() == 0
    token, around = created.lines[-1], {"FOLIOT_PORT": "0", "FOLIOT_WORKERS": "0"}
    async with FoliotProcess("up", "--host", "0.0.0.0", "--plain-http", *data, environment=around) as up:
        port = (await up.event("ProcessStarted", part="up"))["address"].rpartition(":")[2]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            assert (await client.get("/v1/runs", headers=bearer(token))).status_code == 200


async def test_a_server_speaks_tls(database_url: str, store: Store, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.files("IP:127.0.0.1")
    token = await make_token(store)
    around = environment(database_url, tls_certificate_file=str(certificate), tls_key_file=str(key))
    async with FoliotProcess("server", "--host", "0.0.0.0", environment=around) as server:
        address = (await server.event("ProcessStarted", part="server"))["address"]
        assert address.startswith("https://")
        trusted = ssl.create_default_context(cafile=authority.certificate)
        async with httpx.AsyncClient(
            base_url=address.replace("0.0.0.0", "127.0.0.1"), verify=trusted, timeout=20
        ) as client:
            assert (await client.get("/v1/runs", headers=bearer(token))).status_code == 200
    async with FoliotProcess(
        "server", environment=environment(database_url, tls_certificate_file=str(certificate))
    ) as half:
        assert await half.wait() == 2
        assert "belong together" in half.lines[-1]


async def test_workers_serve_one_namespace(database_url: str, store: Store) -> None:
    ours, theirs = (environment(database_url, namespace=name) for name in ("ours", "theirs"))
    tokens = {name: await make_token(store, Role.SUBMITTER, name) for name in ("ours", "theirs")}
    async with (
        FoliotProcess("server", environment=environment(database_url)) as server,
        FoliotProcess("scheduler", environment=environment(database_url)) as scheduler,
        FoliotProcess("worker", APP, environment=ours) as worker,
        api_of(server, part="server") as api,
    ):
        await worker.event("ProcessStarted", part="worker")
        await scheduler.event("ProcessStarted", part="scheduler")
        us = Api(api.client, headers=bearer(tokens["ours"]))
        them = Api(api.client, headers=bearer(tokens["theirs"]))
        job = await us.submit(task="greet", payload={"name": "you"}, retries=0)
        assert (await us.ended(job["id"]))["result"] == "hello you"
        steps = [
            {"key": "a", "task": "greet", "payload": {"name": "a"}},
            {"key": "b", "task": "greet", "after": ["a"], "map": {"items": ["x", "y"], "item_name": "name"}},
        ]
        workflow = await api.client.post("/v1/workflows", json={"steps": steps}, headers=us.headers)
        assert workflow.status_code == 201, workflow.text
        done = await us.ended(workflow.json()["id"])
        assert done["status"] == "completed", done
        # A task of another namespace, whose workers have announced nothing.
        refused = await api.client.post("/v1/jobs", json={"task": "greet"}, headers=them.headers)
        assert refused.json()["code"] == "unknown_task"
        assert (await api.client.get(f"/v1/runs/{job['id']}", headers=them.headers)).status_code == 404
        async with FoliotProcess("worker", APP, environment=theirs) as other:
            await other.event("ProcessStarted", part="worker")
            job = await them.submit(task="greet", payload={"name": "them"})
            assert (await them.ended(job["id"]))["result"] == "hello them"
            found = (await api.client.get("/v1/workers", headers=them.headers)).json()["items"]
            assert [set(one["queues"]) for one in found] == [{"default", "mail"}]


async def test_a_stream_ends_when_its_token_is_revoked(database_url: str, store: Store) -> None:
    token = await make_token(store, Role.OPERATOR, "default", name="watcher")
    await store.workers.announce_tasks({"greet": "default"})
    async with (
        FoliotProcess("server", environment=environment(database_url)) as server,
        api_of(server, part="server") as api,
    ):
        job = await Api(api.client, headers=bearer(token)).submit(task="greet", delay_seconds=3600)
        path = f"/v1/runs/{job['id']}/logs?follow=1"
        async with api.client.stream("GET", path, headers=bearer(token), timeout=60) as stream:
            assert stream.status_code == 200
            token_id = token_id_of(token)
            assert token_id is not None
            await store.tokens.revoke_token(token_id)
            async with asyncio.timeout(PATIENCE_SECONDS):
                async for _ in stream.aiter_bytes():
                    pass
        assert (await api.client.get(path, headers=bearer(token))).status_code == 401
