"""Requests made up from the OpenAPI document, good ones and bad ones, sent to the real server: every answer is one that
it foretells.

Good ones are accepted, but for those that `UNFORESEEABLE` lists: the rules that a schema can't tell. The same ones
every time. `SCHEMATHESIS_EXAMPLES=500 make test ARGS=tests/api/test_fuzzing.py` sends more of them.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import hypothesis
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS as KNOWN_CHECKS
from schemathesis.config import SchemathesisConfig
from schemathesis.core import NotSet
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.result import Ok

from foliot.api.app import Application
from foliot.api.openapi.document import TAGS
from foliot.store.store import Store
from tests.support.secured_app import serving
from tests.support.waiting import PATIENCE_SECONDS

EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "5"))
# The lab deletes by cancelling: what was cancelled is still shown. A header If-Match is good, and not that of what is
# there: 412.
CHECKS = {
    "use_after_free": {"enabled": False},
    "positive_data_acceptance": {"expected-statuses": ["2xx", 304, 404, 409, 412]},
    "negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 429]},
}
# Refusals of requests that fit the document, by the code and the words of the answer. Each with the reason why no
# schema could tell.
UNFORESEEABLE: tuple[tuple[str, str, str], ...] = (
    ("unknown_task", "", "which tasks there are is a matter of the workers"),
    ("invalid_cron", "", "which values a field has, and which days there are, is more than a pattern tells"),
    ("invalid", "there is no IANA time zone", "the names of time zones are data, and change"),
    (
        "invalid",
        "must be in the future|must be after the job is due|before the year 2200|between 1970 and 2200",
        "time goes on",
    ),
    ("invalid", "would never fire", "time goes on"),
    ("invalid", "is more than a day ago", "time goes on"),
    ("invalid", "is before (since|from)|would be more than", "two instants that are compared"),
    ("invalid", "there is no (job|recurring job|workflow or map|calendar) ", "it depends on what is there"),
    (
        "invalid",
        "there is no such step|waits for itself|wait for each other|two steps have the key|must come after",
        "steps name each other",
    ),
    (
        "invalid",
        r"after: '[^']*' is not (an id|the `next` of a page)",
        "the next page of one list is not that of another",
    ),
    ("invalid", "in the header Idempotency-Key", "a field and a header that differ"),
    ("invalid", "is another name of retries", "a schema with this rule as well is too much for the tools that read it"),
    ("invalid", "give either", "two parameters, of which one is to be given"),
    ("invalid", "dependencies: ", "it depends on what kind of jobs these are"),
    ("invalid", "must be a year", "a sum of durations"),
    ("invalid", "a map has", "a quotient"),
    ("invalid", "name: (must|looks)", "which characters there are, and in which form, is up to Unicode"),
    ("invalid", "only \\* makes sense", "it depends on the method"),
)
KNOWN = {
    "task": "send_invoice", "job_type": "send_invoice", "timezone": "Europe/Zurich", "cron": "0 3 * * *", "cron_expression": "0 3 * * *",
}  # fmt: skip
# What the lab calls the types of its jobs is no task.
LAB_TYPES = {"immediate", "delayed", "recurring"}
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
async def url(app: Application) -> AsyncIterator[str]:
    async with serving(app) as url:
        yield url


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
    schemas = [
        named[given["$ref"].rpartition("/")[2]]["schema"] if "$ref" in given else given["schema"]
        for given in found["parameters"]
    ]
    return "requestBody" in found or any(
        schema.get("type") != "string" or {"pattern", "maxLength"} & set(schema) for schema in schemas
    )


def fuzz(operation: Any, mode: GenerationMode, url: str, references: list[str]) -> None:
    is_good = mode is GenerationMode.POSITIVE
    accepted = 0

    @SETTINGS
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode), reference=st.sampled_from([None, *references]))
    def send(case: Any, reference: str | None) -> None:
        nonlocal accepted
        if case.operation.path == "/v1/events":
            # Else it would go on for as long as it is listened to.
            case.query = {**(case.query or {}), "follow": "0"}
        is_endless = case.operation.path.endswith("/events")
        if reference is not None and not is_endless and "reference" in (case.path_parameters or {}):
            case.path_parameters["reference"] = reference
        if is_good:
            case.headers.pop("Foliot-Namespace", None)
            if not isinstance(case.body, NotSet):
                case.body = with_known_names(case.body)
        elif is_good_after_all(case):
            return
        answer = case.call(base_url=url, timeout=PATIENCE_SECONDS)
        is_excused = is_unforeseeable(answer)
        accepted += not is_excused
        case.validate_response(
            answer, excluded_checks=[KNOWN_CHECKS.get_one("positive_data_acceptance")] if is_excused else []
        )

    send()
    assert accepted or not is_good, (
        f"no good request to {operation.label} was accepted: the document leaves out too much"
    )


def is_good_after_all(case: Any) -> bool:
    """Whether what was to be wrong is a header, or a body, that was left out, and may be left out."""
    wrong = {place for place, part in case.meta.components.items() if not part.mode.is_positive}
    has_headers = any(
        name in case.headers
        for name in ("Foliot-Namespace", "If-Match", "If-None-Match", "Idempotency-Key", "Last-Event-ID")
    )
    return (
        wrong <= {ParameterLocation.BODY, ParameterLocation.HEADER}
        and isinstance(case.body, NotSet)
        and not has_headers
    )


def is_unforeseeable(answer: Any) -> bool:
    if answer.status_code != 422:
        return False
    problem = answer.json()
    return any(problem["code"] == code and re.search(words, problem["detail"]) for code, words, _ in UNFORESEEABLE)


def with_known_names(body: Any) -> Any:
    """The same with a task and a time zone that there are, and a good cron expression, wherever there is one: else most
    requests would be refused for these alone."""
    if isinstance(body, list):
        return [with_known_names(value) for value in body]
    if not isinstance(body, dict):
        return body
    known = {
        name: value for name, value in KNOWN.items() if isinstance(body.get(name), str) and body[name] not in LAB_TYPES
    }
    return {
        name: known.get(name, with_known_names(value) if name in ("jobs", "steps") else value)
        for name, value in body.items()
    }
