"""The lab's exercises with their own commands, curl, jq and the shell, on a real cluster. Only the address differs.

A pause takes a tenth of its time. Instead of a container, a test kills or starts a worker process. The tests wait for
the results that an exercise describes.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.debian import require
from tests.support.processes import FoliotProcess
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

PRELUDE = r"""
set -uo pipefail
sleep() { command sleep "$(echo "$1" | awk '{ print $1 / 10 }')"; }
docker() {
  case "$*" in
    "compose kill worker-1")
      until WORKER=$(curl -s http://localhost:8000/jobs/$JOB_ID | jq -er .worker_id); do command sleep 0.1; done
      kill -9 $(curl -s http://localhost:8000/workers \
        | jq -r --arg id $WORKER '.[] | select(.id == $id) | .name | split(":")[1]') ;;
    *) touch "started by: docker $*" ;;
  esac
}
"""


class Lab:
    """Runs the exercises on a cluster with two workers."""

    def __init__(
        self, client: httpx.AsyncClient, cluster: AsyncExitStack, environment: dict[str, str], directory: Path
    ) -> None:
        self._address = str(client.base_url).rstrip("/")
        self._client = client
        self._cluster = cluster
        self._environment = environment
        self._directory = directory

    async def type(self, script: str) -> str:
        """Runs the commands and returns their output."""
        text = (PRELUDE + script).replace("http://localhost:8000", self._address)
        shell = await asyncio.create_subprocess_exec(
            "bash", "-c", text, cwd=self._directory, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        output, errors = await shell.communicate()
        assert shell.returncode == 0, errors.decode()
        assert errors == b""
        return output.decode()

    async def job(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self._client.get(f"/jobs/{job_id}")).json()
        return found

    async def named(self, name: str) -> dict[str, Any]:
        return next(
            job for job in (await self._client.get("/jobs", params={"limit": 200})).json() if job["name"] == name
        )

    async def seen(self, job_id: str, *, seconds: float = PATIENCE_SECONDS, **fields: object) -> dict[str, Any]:
        """Waits until the job has these fields, and returns it."""

        async def look() -> dict[str, Any] | None:
            job = await self.job(job_id)
            return job if all(job[name] == value for name, value in fields.items()) else None

        job = await until(look, seconds=seconds)
        assert job is not None
        return job

    async def metric(self, line: str) -> None:
        async def look() -> bool:
            return line in (await self._client.get("/metrics")).text.splitlines()

        await until(look)

    async def start_worker(self) -> None:
        worker = await self._cluster.enter_async_context(
            FoliotProcess("worker", "--queue", "default=2", environment=self._environment)
        )
        await worker.event("ProcessStarted", part="worker")


@pytest.fixture
async def lab(database_url: str, tmp_path: Path) -> AsyncIterator[Lab]:
    for program in ("curl", "jq"):
        require(program, program)
    environment = {
        "FOLIOT_DATABASE_URL": database_url,
        "FOLIOT_PORT": "0",
        "FOLIOT_WORKER_TTL_SECONDS": "20",
        "FOLIOT_WORKER_BEAT_SECONDS": "2",
    }
    async with AsyncExitStack() as cluster:
        server = await cluster.enter_async_context(FoliotProcess("server", "--open", environment=environment))
        await cluster.enter_async_context(FoliotProcess("scheduler", environment=environment))
        address = (await server.event("ProcessStarted", part="server"))["address"]
        client = await cluster.enter_async_context(httpx.AsyncClient(base_url=address, timeout=PATIENCE_SECONDS))
        found = Lab(client, cluster, environment, tmp_path)
        await found.start_worker()
        await found.start_worker()
        yield found


async def test_exercise_1_runs_immediate_jobs(lab: Lab) -> None:
    output = await lab.type("""
curl -s -X POST http://localhost:8000/jobs \\
  -H "Content-Type: application/json" \\
  -d '{
    "name": "my-first-job",
    "job_type": "immediate",
    "payload": {"action": "compute", "value": 42},
    "execution_time_ms": 2000
  }' | jq

for i in {1..5}; do
  curl -s -X POST http://localhost:8000/jobs \\
    -H "Content-Type: application/json" \\
    -d "{
      \\"name\\": \\"batch-job-$i\\",
      \\"job_type\\": \\"immediate\\",
      \\"execution_time_ms\\": 1000
    }" | jq -r '.id'
done

curl -s http://localhost:8000/stats | jq -c
""")
    first, _, rest = output.partition("\n}\n")
    job = json.loads(first + "}")
    assert (job["name"], job["job_type"], job["payload"]) == (
        "my-first-job",
        "immediate",
        {"action": "compute", "value": 42},
    )
    assert (job["status"], job["attempt"], job["worker_id"]) == ("pending", 0, None)
    *ids, stats = rest.splitlines()
    assert len(ids) == 5
    assert json.loads(stats)["active_workers"] == 2
    assert sum(json.loads(stats)["jobs_by_status"].values()) == 6
    done = [await lab.seen(job_id, status="completed") for job_id in [job["id"], *ids]]
    assert all(one["completed_at"] and one["attempt"] == 1 and one["error_message"] is None for one in done)
    assert all(one["worker_id"] for one in done)
    await lab.metric('jobs_completed_total{status="success"} 6.0')
    await lab.metric("jobs_scheduled_total 6.0")


async def test_exercise_2_runs_delayed_jobs(lab: Lab) -> None:
    output = await lab.type("""
curl -s -X POST http://localhost:8000/jobs \\
  -H "Content-Type: application/json" \\
  -d '{
    "name": "delayed-notification",
    "job_type": "delayed",
    "delay_seconds": 10,
    "payload": {"message": "This runs after 10 seconds"}
  }' | jq -c

JOB_ID=$(curl -s -X POST http://localhost:8000/jobs \\
  -H "Content-Type: application/json" \\
  -d '{
    "name": "timed-job",
    "job_type": "delayed",
    "delay_seconds": 15
  }' | jq -r '.id')

echo "Created job: $JOB_ID"

for i in {1..10}; do
  echo "=== Check $i ==="
  curl -s "http://localhost:8000/jobs/$JOB_ID" | jq -c '{status, scheduled_at, started_at}'
  sleep 3
done
""")
    job = json.loads(output.splitlines()[0])
    assert (job["status"], job["job_type"], job["started_at"]) == ("pending", "delayed", None)
    assert job["scheduled_at"] > job["created_at"]
    check = json.loads(output.splitlines()[3])
    assert (check["status"], check["started_at"]) == ("pending", None)
    ended = await lab.seen(job["id"], status="completed")
    assert ended["started_at"] >= ended["scheduled_at"] == job["scheduled_at"]


async def test_exercise_3_recovers_the_job_of_a_killed_worker(lab: Lab) -> None:
    output = await lab.type("""
JOB_ID=$(curl -s -X POST http://localhost:8000/jobs \\
  -H "Content-Type: application/json" \\
  -d '{
    "name": "long-running-job",
    "job_type": "immediate",
    "execution_time_ms": 30000,
    "max_retries": 3
  }' | jq -r '.id')

echo "Created job: $JOB_ID"
sleep 3
curl -s "http://localhost:8000/jobs/$JOB_ID" | jq -c '{status, worker_id, attempt}'
docker compose kill worker-1
echo "killed $WORKER"
for i in {1..10}; do
  curl -s "http://localhost:8000/jobs/$JOB_ID" | jq -c '{status, worker_id, attempt, error_message}'
  sleep 5
done
docker compose up -d worker-1
""")
    job_id = output.splitlines()[0].removeprefix("Created job: ")
    dead = next(line for line in output.splitlines() if line.startswith("killed ")).removeprefix("killed ")
    job = await lab.seen(job_id, status="running", attempt=2)
    assert job["worker_id"] not in (dead, None)
    assert (job["error_message"], job["max_retries"]) == ("the worker was lost", 3)
    await lab.metric("foliot_runs_lost_total 1.0")
    assert (
        json.loads(await lab.type(f"curl -s -X DELETE http://localhost:8000/jobs/{job_id} | jq -c"))["status"]
        == "cancelled"
    )


async def test_exercise_4_retries_failed_jobs(lab: Lab) -> None:
    output = await lab.type("""
JOB_ID=$(curl -s -X POST http://localhost:8000/jobs \\
  -H "Content-Type: application/json" \\
  -d '{
    "name": "flaky-job",
    "job_type": "immediate",
    "execution_time_ms": 500,
    "fail_rate": 0.7,
    "max_retries": 5
  }' | jq -r '.id')

echo "Created job: $JOB_ID"
for i in {1..20}; do
  STATUS=$(curl -s "http://localhost:8000/jobs/$JOB_ID")
  echo "Attempt $(echo $STATUS | jq -r '.attempt'), Status: $(echo $STATUS | jq -r '.status')"
  if [[ "$(echo $STATUS | jq -r '.status')" == "completed" ]] || \\
     [[ "$(echo $STATUS | jq -r '.status')" == "failed" ]]; then
    echo "Final status: $(echo $STATUS | jq -r '.status')"
    break
  fi
  sleep 2
done
curl -s http://localhost:8000/metrics | grep job_retries
""")
    assert "# TYPE job_retries_total counter" in output
    assert ", Status: " in output.splitlines()[1]
    # The outcome of that job is random. These two always fail: one shows its error while it waits for a retry, the
    # other at its end.
    made = await lab.type("""
for retries in 5 0; do
  curl -s -X POST http://localhost:8000/jobs -H "Content-Type: application/json" \\
    -d '{"name": "hopeless", "execution_time_ms": 10, "fail_rate": 1, "max_retries": '$retries'}' | jq -r .id
done
""")
    often, once = made.split()
    failed = await lab.seen(once, status="failed")
    assert (failed["attempt"], failed["error_message"]) == (1, "failed with probability 1")

    async def waits() -> bool:
        job = await lab.job(often)
        return bool(
            job["status"] == "pending" and job["attempt"] > 0 and job["error_message"] == "failed with probability 1"
        )

    await until(waits)


async def test_exercise_5_empties_the_queue_with_more_workers(lab: Lab) -> None:
    output = await lab.type("""
curl -s http://localhost:8000/workers | jq -c
for i in {1..20}; do
  curl -s -X POST http://localhost:8000/jobs \\
    -H "Content-Type: application/json" \\
    -d "{
      \\"name\\": \\"scale-test-$i\\",
      \\"job_type\\": \\"immediate\\",
      \\"execution_time_ms\\": 2000
    }" > /dev/null
done
echo "Created 20 jobs"
for i in {1..5}; do
  curl -s http://localhost:8000/stats | jq -c '{queue_length, active_workers, jobs_by_status}'
  sleep 3
done
docker compose --profile scale up -d worker-3
echo "Scaled to 3 workers"
""")
    workers, _, first, *_ = output.splitlines()
    assert [worker["status"] for worker in json.loads(workers)] == ["active", "active"]
    assert set(json.loads(first)) == {"queue_length", "active_workers", "jobs_by_status"}
    assert sum(json.loads(first)["jobs_by_status"].values()) == 20
    await lab.start_worker()
    last = await lab.named("scale-test-20")
    await lab.seen(last["id"], status="completed")
    stats = json.loads(await lab.type("curl -s http://localhost:8000/stats | jq -c '{queue_length, active_workers}'"))
    assert stats == {"queue_length": 0, "active_workers": 3}


async def test_lab_api_runs_recurring_jobs_and_honours_priorities(lab: Lab) -> None:
    """No exercise covers these, but the lab lists them among its features."""
    made = json.loads(
        await lab.type("""
curl -s -X POST http://localhost:8000/jobs -H "Content-Type: application/json" \\
  -d '{"name": "every second", "job_type": "recurring", "cron": "* * * * * *", "execution_time_ms": 10,
       "payload": {"a": 1}}' | jq -c
""")
    )
    assert (made["job_type"], made["status"], made["payload"]) == ("recurring", "pending", {"a": 1})

    async def has_run() -> bool:
        return bool((await lab.job(made["id"]))["completed_at"])

    await until(has_run)
    gone = json.loads(await lab.type(f"curl -s -X DELETE http://localhost:8000/jobs/{made['id']} | jq -c"))
    assert (gone["status"], gone["scheduled_at"]) == ("cancelled", None)
    # Six jobs for four slots: the one with the lowest priority was created first, and starts last.
    await lab.type("""
create() { curl -s -X POST http://localhost:8000/jobs -H "Content-Type: application/json" -d "$1" > /dev/null; }
curl -s -X POST http://localhost:8000/v1/queues/default/pause > /dev/null
create '{"name": "low", "execution_time_ms": 1000, "priority": -5}'
for i in {1..4}; do create '{"name": "middle", "execution_time_ms": 1000}'; done
create '{"name": "high", "execution_time_ms": 1000, "priority": 5}'
curl -s -X POST http://localhost:8000/v1/queues/default/resume > /dev/null
""")
    low, high = await lab.named("low"), await lab.named("high")
    ended = [await lab.seen(job["id"], status="completed") for job in (low, high)]
    assert ended[0]["created_at"] < ended[1]["created_at"]
    assert ended[0]["started_at"] > ended[1]["started_at"]
