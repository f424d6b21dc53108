"""An invalid payload of a built-in task is refused at submission, however it is submitted, and nothing is stored."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from foliot.errors import Invalid
from foliot.model.states import RunState
from foliot.sdk.direct_submission import DirectSubmission, read_job
from foliot.sdk.jobs import Alike
from foliot.store.store import Store
from tests.api.conftest import TASKS
from tests.support.runs import finish

BAD = {"command": "true", "sandbox": True}
JOB = {"task": "shell", "payload": BAD}
FINE = {"task": "shell", "payload": {"command": "true"}}


@pytest.fixture(autouse=True)
async def announced(client: httpx.AsyncClient, store: Store) -> None:
    await store.workers.announce_tasks(TASKS | dict.fromkeys(("workflow", "map", "http", "wait"), "default"))


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/jobs", JOB, "payload.sandbox"),
        ("/v1/jobs", {"job_type": "shell", "payload": BAD}, "payload.sandbox"),
        ("/v1/jobs", JOB | {"idempotency_key": "once"}, "payload.sandbox"),
        ("/v1/jobs", JOB | {"unique": {"key": "one"}}, "payload.sandbox"),
        ("/v1/jobs", JOB | {"delay_seconds": 60}, "payload.sandbox"),
        ("/v1/jobs", JOB | {"every": "1h"}, "payload.sandbox"),
        ("/v1/jobs", {"task": "wait", "payload": {"seconds": 5}}, "payload.seconds"),
        ("/v1/jobs", {"task": "http", "payload": {}}, "payload"),
        ("/v1/jobs", {"task": "map", "payload": {"map": {"items": [1]}, **JOB}}, "payload.payload.sandbox"),
        ("/v1/jobs/batch", [FINE, JOB], "[1].payload.sandbox"),
        ("/v1/jobs/batch", {"jobs": [FINE, JOB]}, "jobs[1].payload.sandbox"),
        ("/v1/workflows", {"steps": [{"key": "a", **FINE}, {"key": "b", **JOB}]}, "steps[1].payload.sandbox"),
        ("/v1/workflows", {"name": "w", "every": "1h", "steps": [{"key": "a", **JOB}]}, "steps[0].payload.sandbox"),
        (
            "/v1/workflows",
            {"steps": [{"key": "a", **JOB, "map": {"items": ["x"], "item_name": "stdin"}}]},
            "steps[0].payload.sandbox",
        ),
        (
            "/v1/jobs",
            {
                "task": "workflow",
                "payload": {"steps": [{"key": "in", "task": "workflow", "payload": {"steps": [{"key": "a", **JOB}]}}]},
            },
            "payload.steps[0].payload.steps[0].payload.sandbox",
        ),
    ],
)
async def test_an_invalid_payload_of_a_built_in_task_is_refused_with_its_field(
    client: httpx.AsyncClient, sql: Any, path: str, body: Any, field: str
) -> None:
    answer = await client.post(path, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == field
    assert await sql.fetchval("select (select count(*) from foliot.runs) + (select count(*) from foliot.jobs)") == 0


async def test_a_reference_to_a_result_is_checked_at_execution(client: httpx.AsyncClient) -> None:
    steps = [
        {"key": "a", **FINE},
        {"key": "b", "task": "shell", "payload": {"command": {"$result": "a"}}, "after": ["a"]},
    ]
    assert (await client.post("/v1/workflows", json={"steps": steps})).status_code == 201
    steps[1]["payload"] = {"command": {"$result": "a"}, "sandbox": True}
    assert (await client.post("/v1/workflows", json={"steps": steps})).json()["field"] == "steps[1].payload.sandbox"
    # A step without upstream steps has no result to refer to, so this is not a reference but a command of the wrong
    # type.
    alone = [{"key": "b", "task": "shell", "payload": {"command": {"$result": "a"}}}]
    assert (await client.post("/v1/workflows", json={"steps": alone})).json()["field"] == "steps[0].payload.command"


async def test_changes_reruns_and_replays_are_checked(client: httpx.AsyncClient, store: Store) -> None:
    assert (await client.post("/v1/jobs", json=FINE | {"name": "nightly", "every": "1h"})).status_code == 201
    answer = await client.patch("/v1/jobs/nightly", json={"payload": BAD})
    assert (answer.status_code, answer.json().get("field")) == (422, "payload.sandbox")
    assert (await client.patch("/v1/jobs/nightly", json={"payload": {"command": "false"}})).status_code == 200
    failed = await finish(store, RunState.FAILED, task="shell")
    for path, body in ((f"/v1/runs/{failed}/rerun", {}), ("/v1/dead-letters/replay", {"ids": [str(failed)]})):
        answer = await client.post(path, json=body | {"payload": BAD})
        assert (answer.status_code, answer.json().get("field")) == (422, "payload.sandbox"), path


async def test_jobs_straight_to_the_database_are_checked(store: Store) -> None:
    submission = DirectSubmission(store=store, namespace="default")
    with pytest.raises(Invalid, match=r"payload\.sandbox"):
        await submission.accept(read_job(JOB))
    with pytest.raises(Invalid, match=r"payload\.steps\[0\]\.payload\.sandbox"):
        await submission.accept(read_job({"task": "workflow", "payload": {"steps": [{"key": "a", **JOB}]}}))
    with pytest.raises(Invalid, match=r"payload\.sandbox"):
        await submission.store_alike(Alike({"task": "shell"}, [{"command": "true"}, BAD]))
    assert len(await submission.store_alike(Alike({"task": "shell"}, [{"command": "true"}, {"argv": ["true"]}]))) == 2
