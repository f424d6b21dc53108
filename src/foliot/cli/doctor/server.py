"""The part of the report that a running server provides."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import foliot
from foliot.cli.doctor.findings import Finding, Picture, Queue, findings_on, notice, problem
from foliot.config import from_environment
from foliot.errors import FoliotError, Unreachable
from foliot.sdk.http_protocol import DEFAULT_URL, Answer
from foliot.sdk.operations import Operations

ANSWER_SECONDS = 10.0


def server_report() -> tuple[dict[str, Any] | None, list[Finding]]:
    """None if no server answers. A question that the token does not allow is reported as its error."""
    try:
        with Operations.from_environment(answer_seconds=ANSWER_SECONDS) as client:
            return _read(client)
    except FoliotError as error:
        is_expected = "FOLIOT_URL" in os.environ or "FOLIOT_URL_FILE" in os.environ
        found = problem if is_expected else notice
        return None, [found(f"No server answers: {error.detail}", "Start `foliot server`, or set FOLIOT_URL.")]


def _read(client: Operations) -> tuple[dict[str, Any], list[Finding]]:
    questions: dict[str, Callable[[], Answer]] = {
        "installation": client.list_schedulers,
        "database": client.get_database_health,
        "settings": client.list_settings,
        "workers": client.list_workers,
        "queues": client.list_queues,
        "dead_letters": lambda: client.group_dead_letters({}),
    }
    report: dict[str, Any] = {"url": from_environment("FOLIOT_URL") or DEFAULT_URL}
    findings: list[Finding] = []
    try:
        report["readiness"] = client.get_readiness().document
    except Unreachable:
        raise
    except FoliotError as error:
        report["readiness"] = {"error": error.detail}
        findings.append(problem(f"The server is not ready: {error.detail}."))
    for name, ask in questions.items():
        try:
            report[name] = ask().document
        except Unreachable:
            raise
        except FoliotError as error:
            report[name] = {"error": error.detail}
    return report, [*findings, *_findings_on(report)]


def _findings_on(report: dict[str, Any]) -> list[Finding]:
    installation, database, workers, queues = (
        report[name] for name in ("installation", "database", "workers", "queues")
    )
    if any("error" in part for part in (installation, workers, queues)):
        told = next(part["error"] for part in (installation, workers, queues) if "error" in part)
        return [notice(f"The server does not tell everything: {told}", "Use a token for all namespaces.")]
    found = []
    if installation["version"] != foliot.__version__:
        found.append(
            notice(f"The server has version {installation['version']}, and this program {foliot.__version__}.")
        )
    found += [Finding(one["severity"], one["text"], one["action"]) for one in database.get("advice", ())]
    return [*found, *findings_on(picture_of(installation, workers, queues))]


def picture_of(installation: dict[str, Any], workers: dict[str, Any], queues: dict[str, Any]) -> Picture:
    return Picture(
        schedulers=sum(one["is_alive"] for one in installation["items"]),
        unowned_shards=installation["shards"] - installation["owned_shards"],
        workers=len(workers["items"]),
        queues=[
            Queue(
                one["name"], one["ready"]["count"], one["oldest_ready_seconds"] or 0.0, one["workers"],
                one["paused"] is not None,
            )
            for one in queues["items"]
        ],
        outdated=[one["name"] for one in installation["processes"] if not one["is_current"]],
    )  # fmt: skip
