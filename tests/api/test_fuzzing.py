"""Requests made up from the OpenAPI document, good ones and bad ones, sent to the real server: every answer is one that it foretells.

The same ones every time. `SCHEMATHESIS_EXAMPLES=500 make test ARGS=tests/api/test_fuzzing.py` sends more of them.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import hypothesis
import pytest
import schemathesis
import uvicorn
from fastapi import FastAPI
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok

from foliot.api.document import TAGS
from foliot.store.store import Store

EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "5"))
# Fields that contradict each other are refused although each by itself is as the schema says, so a refusal of good data is no fault.
# The lab deletes by cancelling: what was cancelled is still shown.
CHECKS = {
    "positive_data_acceptance": {"enabled": False},
    "use_after_free": {"enabled": False},
    "negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 429]},
}
NOTHING = "0190a6f0-0000-7000-8000-000000000001"
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)


@pytest.fixture
async def url(app: FastAPI) -> AsyncIterator[str]:
    """The application on a real socket."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    await serving


@pytest.fixture
async def references(client: httpx.AsyncClient, store: Store) -> list[str]:
    """Of things that are there, and one that is not: most that is made up leads nowhere."""
    await store.workers.announce_tasks({"workflow": "default", "wait": "default"})
    found = [NOTHING, "nightly-report"]
    await client.post("/v1/jobs", json={"name": "nightly-report", "task": "send_invoice", "cron": "0 3 * * *"})
    for path, body in (
        ("/v1/jobs", {"task": "send_invoice"}), ("/v1/jobs", {"signal": {}}), ("/jobs", {"name": "lab"}),
        ("/v1/workflows", {"steps": [{"key": "a", "task": "send_invoice"}, {"key": "b", "command": "true", "after": ["a"]}]}),
    ):  # fmt: skip
        answer = await client.post(path, json=body)
        assert answer.status_code == 201, answer.text
        found.append(answer.json()["id"])
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("tag", TAGS)
async def test_no_request_meets_what_is_not_documented(app: FastAPI, url: str, references: list[str], tag: str) -> None:
    config = SchemathesisConfig.from_dict({"checks": CHECKS})
    schema = schemathesis.openapi.from_dict(app.openapi(), config=config).include(tag=tag)
    operations: list[Any] = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert operations
    for operation in operations:
        for mode in GenerationMode if can_be_wrong(app.openapi(), operation) else [GenerationMode.POSITIVE]:
            await asyncio.to_thread(fuzz, operation, mode, url, references)


def can_be_wrong(document: dict[str, Any], operation: Any) -> bool:
    """Not if all it takes is text of any kind."""
    found = document["paths"][operation.path][operation.method]
    named = document["components"]["parameters"]
    schemas = [named[given["$ref"].rpartition("/")[2]]["schema"] if "$ref" in given else given["schema"] for given in found["parameters"]]
    return "requestBody" in found or any(schema.get("type") != "string" or {"pattern", "maxLength"} & set(schema) for schema in schemas)


def fuzz(operation: Any, mode: GenerationMode, url: str, references: list[str]) -> None:
    @SETTINGS
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode), reference=st.sampled_from([None, *references]))
    def send(case: Any, reference: str | None) -> None:
        if case.operation.path == "/v1/events":
            # Else it would go on for as long as it is listened to.
            case.query = {**(case.query or {}), "follow": "0"}
        is_endless = case.operation.path.endswith("/events")
        if reference is not None and not is_endless and "reference" in (case.path_parameters or {}):
            case.path_parameters["reference"] = reference
        case.call_and_validate(base_url=url, timeout=30)

    send()
