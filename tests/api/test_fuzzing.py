"""Valid and invalid requests generated from the OpenAPI document get only documented answers from a real server.

Valid requests are accepted, except for those in `UNFORESEEABLE`, which break rules that a schema can't express. The
requests are the same each time. `SCHEMATHESIS_EXAMPLES=500 make test ARGS=tests/api/test_fuzzing.py` sends more of
them.
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
from foliot.config import Config
from foliot.store.store import Store
from tests.support.secured_app import serving
from tests.support.waiting import PATIENCE_SECONDS

EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "5"))
# In the lab a delete cancels, so the job is still shown. A well-formed If-Match may not match: 412.
CHECKS = {
    "use_after_free": {"enabled": False},
    "positive_data_acceptance": {"expected-statuses": ["2xx", 304, 404, 409, 412]},
    "negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 429]},
}
# Refusals of requests that match the document, by code and text, each with the reason why no schema can express the
# rule.
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
    ("invalid", "is more than a day ago|must be within a year from now", "time goes on"),
    ("invalid", "400 days at most", "two instants that are compared"),
    ("invalid", "^cron: give cron, every or times$", "a preview may take the schedule of a job"),
    ("invalid", "there is no such parameter", "a workflow declares its own parameters"),
    ("invalid", "is before (since|from)|must be before until|would be more than", "two instants that are compared"),
    ("invalid", "there is no (job|recurring job|workflow or map|calendar|live worker) ", "it depends on what is there"),
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
    (
        "invalid",
        "has no such scope|needs the name of a recurring job",
        "each condition of alerts has a scope of its own",
    ),
    ("invalid", "there is no alert channel|a channel is listed twice", "it depends on what is there"),
    ("invalid", "subject: give the rule", "two fields that go together"),
    ("invalid", "in the header Idempotency-Key", "a field and a header that differ"),
    ("invalid", "is another name of retries", "a schema with this rule as well is too much for the tools that read it"),
    ("invalid", "has one page|are not listed oldest first", "two parameters that do not go together"),
    ("invalid", "give either", "two parameters, of which one is to be given"),
    ("invalid", r"\bwhen: ", "a condition is an expression"),
    ("invalid", "dependencies: ", "it depends on what kind of jobs these are"),
    ("invalid", "must be a year", "a sum of durations"),
    ("invalid", "a map has", "a quotient"),
    ("invalid", "name: (must|looks)", "which characters there are, and in which form, is up to Unicode"),
    ("invalid", "only \\* makes sense", "it depends on the method"),
    ("invalid", "has no secret_key|is not among the secret_references", "it depends on the settings"),
    ("invalid", "resolves to .* which is not public|can't be read as a URL", "a rule about addresses"),
    ("invalid", "stands for a stored secret", "it depends on what is stored"),
    ("invalid", "it must be whsec_", "a length in base64"),
    ("invalid", "belong together|would travel in plain text", "fields of an email channel that go together"),
    ("invalid", "(filter|key|payload.*): character", "conditions and templates are languages of their own"),
    ("invalid", "messages can't start|a whole message could be", "it depends on the task"),
    ("invalid", "(title|body): character", "a template is a language of its own"),
)
KNOWN = {
    "task": "send_invoice", "job_type": "send_invoice", "timezone": "Europe/Zurich", "cron": "0 3 * * *",
    "cron_expression": "0 3 * * *",
}  # fmt: skip
# Where sources may say that a URL or a secret is.
PLACE = "env:ORDERS_URL"
# The job types of the lab are not tasks.
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
def config() -> Config:
    return Config(secret_references=PLACE)


@pytest.fixture
async def url(app: Application) -> AsyncIterator[str]:
    async with serving(app) as url:
        yield url


@pytest.fixture
async def references(client: httpx.AsyncClient, store: Store) -> list[str]:
    """References to existing resources, and one to a missing one. Most generated references lead nowhere."""
    await store.workers.announce_tasks({"workflow": "default", "wait": "default"})
    found = [NOTHING, "nightly-report"]
    await client.post("/v1/jobs", json={"name": "nightly-report", "task": "send_invoice", "cron": "0 3 * * *"})
    for path, body in (
        ("/v1/jobs", {"task": "send_invoice"}), ("/v1/jobs", {"signal": {}}), ("/jobs", {"name": "lab"}),
        ("/v1/workflows", {"steps": [{"key": "a", "task": "send_invoice"}, {"key": "b", "command": "true",
            "after": ["a"]}]}),
    ):  # fmt: skip
        answer = await client.post(path, json=body)
        assert answer.status_code == 201, answer.text
        found.append(answer.json()["id"])
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("tag", [pytest.param(tag, marks=[pytest.mark.slow] if tag == "runs" else []) for tag in TAGS])
async def test_no_request_gets_an_undocumented_answer(app: FastAPI, url: str, references: list[str], tag: str) -> None:
    config = SchemathesisConfig.from_dict({"checks": CHECKS})
    schema = schemathesis.openapi.from_dict(app.openapi(), config=config).include(tag=tag)
    operations: list[Any] = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert operations
    for operation in operations:
        for mode in GenerationMode if can_be_wrong(app.openapi(), operation) else [GenerationMode.POSITIVE]:
            await asyncio.to_thread(fuzz, operation, mode, url, references)


def can_be_wrong(document: dict[str, Any], operation: Any) -> bool:
    """Whether the operation has any input that a schema can refuse."""
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
        if case.operation.path in ("/v1/events", "/v1/pulse"):
            # Otherwise the stream would not end.
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
    """Whether the invalid part is an optional header or body that was left out."""
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
    """Replaces tasks, time zones and cron expressions by valid ones, because otherwise most requests would be refused
    for these alone."""
    if isinstance(body, list):
        return [with_known_names(value) for value in body]
    if not isinstance(body, dict):
        return body
    known = {
        name: value for name, value in KNOWN.items() if isinstance(body.get(name), str) and body[name] not in LAB_TYPES
    }
    if "topic" in body or body.get("kind") == "webhook":
        known |= {name: PLACE for name in ("url", "secret") if isinstance(body.get(name), str)}
    return {
        name: known.get(name, with_known_names(value) if name in ("jobs", "steps") else value)
        for name, value in body.items()
    }
