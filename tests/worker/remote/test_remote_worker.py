"""Workers without database access, as processes: every feature of a worker, and every way to lose one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import free_port
from tests.support.processes import FoliotProcess
from tests.support.waiting import until
from tests.worker.remote.cluster import SETTINGS, RemoteCluster, remote_cluster

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


@pytest.fixture
async def cluster(database_url: str) -> AsyncIterator[RemoteCluster]:
    async with remote_cluster(database_url, port=free_port()) as cluster:
        yield cluster


async def began(directory: Path, attempt: int) -> bool:
    async def look() -> bool:
        return any(directory.glob(f"began-{attempt}-*"))

    return await until(look) or True


async def result_of(cluster: RemoteCluster, job_id: str) -> Any:
    job = await cluster.api.ended(job_id)
    assert job["status"] == "completed", job
    return job["result"]


async def post(cluster: RemoteCluster, path: str, body: Any) -> Any:
    answer = await cluster.api.client.post(path, json=body, headers=cluster.api.headers)
    assert answer.status_code in (200, 201, 202), answer.text
    return answer.json()


async def test_features(cluster: RemoteCluster, tmp_path: Path) -> None:
    """One server and one worker serve all of these, since starting them takes longest."""
    api, here = cluster.api, {"directory": str(tmp_path)}
    async with cluster.worker() as worker:
        await worker.event("ProcessStarted", part="worker")
        # Results, retries, printed output and built-in tasks.
        assert await result_of(cluster, (await api.submit(task="add", payload={"a": 2, "b": 3}))["id"]) == 5
        assert await result_of(cluster, (await api.submit(task="flaky", payload=here))["id"]) == 3
        printed = await api.submit(task="print_lines", payload={"number": 3})
        assert await result_of(cluster, printed["id"]) == "printed"
        logs = await api.client.get(f"/v1/runs/{printed['id']}/logs", headers=api.headers)
        assert logs.text == "line 0\nline 1\nline 2\n"
        command = await api.ended((await api.submit(command="echo from the shell"))["id"])
        assert command["status"] == "completed"
        # A workflow of steps that read earlier results, with a map, and one that the worker expands itself.
        steps = [
            {"key": "a", "task": "add", "payload": {"a": 1, "b": 1}},
            {"key": "b", "task": "add", "payload": {"a": {"$result": "a"}, "b": 10}, "after": ["a"]},
            {"key": "c", "task": "total", "after": ["a", "b"]},
            {
                "key": "d",
                "task": "add",
                "payload": {"b": 1},
                "map": {"items": [1, 2, 3], "item_name": "a"},
                "after": ["c"],
            },
        ]
        made = await post(cluster, "/v1/workflows", {"name": "sums", "steps": steps})
        nested = await api.submit(task="workflow", payload={"steps": steps[:2]})
        assert (await api.ended(made["id"]))["status"] == "completed"
        assert (await api.ended(nested["id"]))["status"] == "completed"
        assert await result_of(cluster, made["steps"]["b"]) == 12
        assert await result_of(cluster, made["steps"]["c"]) == 14
        assert (await result_of(cluster, made["steps"]["d"]))["results"] == [2, 3, 4]
        # A durable function is suspended and continues.
        order = await api.submit(task="order", payload=here)

        async def waits() -> bool:
            run = (await api.client.get(f"/v1/runs/{order['id']}", headers=api.headers)).json()
            return "approve" in ((run.get("awaits") or {}).get("signals") or [])

        await until(waits)
        await post(cluster, f"/v1/runs/{order['id']}/signal", {"name": "approve", "payload": {"by": "ann"}})
        assert await result_of(cluster, order["id"]) == [7, 8, {"by": "ann"}]
        assert (tmp_path / "charged").read_text() == "x"
        # A cancel stops a running attempt.
        held = await api.submit(task="hold", payload=here)
        await began(tmp_path, 1)
        await post(cluster, f"/v1/runs/{held['id']}/cancel", {})
        assert (await api.ended(held["id"]))["status"] == "cancelled"
        # A drain lets it finish, and it leaves.
        listed = (await api.client.get("/v1/workers", headers=api.headers)).json()["items"]
        (worker_id,) = [one["id"] for one in listed]
        await post(cluster, f"/v1/workers/{worker_id}/drain", {})
        assert await worker.wait() == 0
        assert (await api.client.get("/v1/workers", headers=api.headers)).json()["items"] == []


async def test_runs_of_a_killed_worker_run_elsewhere(cluster: RemoteCluster, tmp_path: Path) -> None:
    async with cluster.worker() as first:
        await first.event("ProcessStarted", part="worker")
        job = await cluster.api.submit(task="hold", payload={"directory": str(tmp_path)})
        await began(tmp_path, 1)
        first.signal(signal.SIGKILL)
        async with cluster.worker() as second:
            await began(tmp_path, 2)
            (tmp_path / "go").touch()
            assert await result_of(cluster, job["id"]) == "attempt 2"
            second.signal(signal.SIGTERM)
            assert await second.wait() == 0


async def test_a_worker_survives_the_death_of_its_server(
    cluster: RemoteCluster, database_url: str, tmp_path: Path
) -> None:
    async with cluster.worker() as worker:
        await worker.event("ProcessStarted", part="worker")
        job = await cluster.api.submit(task="hold", payload={"directory": str(tmp_path)})
        await began(tmp_path, 1)
        cluster.server.signal(signal.SIGKILL)
        await cluster.server.wait()
        (tmp_path / "go").touch()
        port = cluster.url.rpartition(":")[2]
        environment = SETTINGS | {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": port}
        async with FoliotProcess("server", environment=environment) as server:
            await server.event("ProcessStarted", part="server")
            assert (await result_of(cluster, job["id"])).startswith("attempt")
            again = await cluster.api.submit(task="add", payload={"a": 1, "b": 1})
            assert await result_of(cluster, again["id"]) == 2


async def test_a_worker_whose_token_is_revoked_stops_and_its_runs_are_given_to_others(
    cluster: RemoteCluster, tmp_path: Path
) -> None:
    async with cluster.worker() as worker, cluster.worker(token="other") as other:
        await worker.event("ProcessStarted", part="worker")
        job = await cluster.api.submit(task="hold", payload={"directory": str(tmp_path)})
        await began(tmp_path, 1)
        holder = worker if any(tmp_path.glob(f"began-1-{worker.pid}")) else other
        name = "worker" if holder is worker else "other"
        answer = await cluster.api.client.delete(f"/v1/tokens/{name}", headers=cluster.api.headers)
        assert answer.status_code == 200, answer.text
        assert await holder.wait() == 2
        assert any("token" in line for line in holder.lines[-5:])
        await began(tmp_path, 2)
        (tmp_path / "go").touch()
        assert await result_of(cluster, job["id"]) == "attempt 2"


@pytest.mark.parametrize(
    ("token", "app", "says"),
    [
        ("viewer", "tests.worker.remote.shop_app:app", "may not do this"),
        ("foliot_0000000000000000_nothing", "tests.worker.remote.shop_app:app", "token"),
        ("worker", "tests.worker.remote.transactional_app:app", "needs a worker with access to the database"),
    ],
)
async def test_a_worker_that_cannot_work_ends_at_once_with_one_sentence(
    cluster: RemoteCluster, token: str, app: str, says: str
) -> None:
    async with cluster.worker(app=app, token=token) as worker:
        assert await worker.wait(seconds=60) == 2
        assert any(says in line for line in worker.lines), worker.lines
        await asyncio.sleep(0)
