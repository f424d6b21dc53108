"""Says what a job or workflow waits for: once after it was submitted, or again and again while the user waits."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

import click

from foliot.cli.tables import clean
from foliot.clock import SystemClock, block
from foliot.errors import FoliotError
from foliot.sdk.client import ENDED, TRANSIENT_ERRORS, Client, Patience
from foliot.sdk.http_protocol import Answer

FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 1.0, 30.0
# Other runs are ahead. Nobody has to do anything about that.
FLEETING = frozenset({"line", "queue_limit"})


def situation(client: Client, run_id: str) -> str:
    """Describes what a new run does or waits for. Empty if the server can't tell."""
    found = _explained(client, run_id)
    if found is None:
        return ""
    gate = closed_gate(found)
    if gate is not None:
        return f"waits: {clean(gate['detail'])}"
    return {"running": "runs", "ready": "starts as soon as a worker takes it"}.get(found["state"], "")


def wait_for_job(client: Client, job_id: str) -> Answer:
    told = Told()
    return _wait(client, job_id, lambda: told.tell(_explained(client, job_id), ""))


def wait_for_workflow(client: Client, workflow_id: str) -> None:
    told = Told()
    while (found := client.get_workflow(workflow_id).document)["status"] not in ENDED:
        # Poll the run, which is cheaper than the workflow with all its steps. A redrive creates another run.
        _wait(client, found["run_id"], lambda: _tell_steps(client, workflow_id, told))


def signal_command(workflow_id: str, step: str) -> str:
    return f"foliot signal {workflow_id} {shlex.quote(step)}"


class Told:
    """Remembers the last message, so that it is repeated only when it changes."""

    def __init__(self) -> None:
        self._gates: dict[str, str] = {}

    def tell(self, found: Mapping[str, Any] | None, step: str) -> None:
        gate = None if found is None else closed_gate(found)
        if gate is None or gate["gate"] in FLEETING or self._gates.get(step) == gate["gate"]:
            return
        self._gates[step] = gate["gate"]
        click.echo(f"{f'step {clean(step)} ' if step else ''}waits: {clean(gate['detail'])}", err=True)

    def tell_signal(self, workflow_id: str, step: str) -> None:
        if self._gates.get(step) != "signal":
            self._gates[step] = "signal"
            click.echo(f"step {clean(step)} waits for a signal: {signal_command(workflow_id, clean(step))}", err=True)


def closed_gate(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The first gate that holds the run back; None for a run that is under way."""
    if found["state"] == "running":
        return None
    return next((gate for gate in found["gates"] if not gate["is_open"] and gate["gate"] != "children"), None)


def _wait(client: Client, job_id: str, look: Callable[[], None]) -> Answer:
    clock, patience, pause = SystemClock(), Patience(job_id, None), FIRST_LOOK_SECONDS
    look_at = clock.monotonic() + pause
    while True:
        try:
            answer = client.get_job(job_id)
        except TRANSIENT_ERRORS as error:
            patience.lost(error)
        else:
            if patience.is_over(answer.document):
                return answer
        if clock.monotonic() >= look_at:
            look()
            pause = min(pause * 2, LONGEST_LOOK_SECONDS)
            look_at = clock.monotonic() + pause
        block(patience.pause())


def _tell_steps(client: Client, workflow_id: str, told: Told) -> None:
    """Tells which steps wait for a signal, and what holds back the first of the others."""
    try:
        steps = client.get_workflow(workflow_id).document["steps"]
    except FoliotError:
        return
    for step in steps:
        if step["held_by"] == "signal":
            told.tell_signal(workflow_id, step["key"])
    waiting = [
        step for step in steps if step["state"] in ("ready", "held", "scheduled") and step["held_by"] != "signal"
    ]
    if waiting and waiting[0]["id"]:
        told.tell(_explained(client, waiting[0]["id"]), waiting[0]["key"])


def _explained(client: Client, reference: str) -> Mapping[str, Any] | None:
    try:
        return client.explain(reference).document
    except FoliotError:
        # The caller may not be allowed to look, and the job is submitted all the same.
        return None
