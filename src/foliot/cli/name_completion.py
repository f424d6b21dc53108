"""Completes names for the shell. They come from the server; without a quick answer there are none, and no error."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click
from click.shell_completion import CompletionItem

from foliot.errors import FoliotError
from foliot.sdk.operations import Operations

TIMEOUT_SECONDS = 1.0
RUNS_SHOWN = 20
TASKS_SHOWN = 200

Names = Callable[[Operations, str], Iterator[CompletionItem]]
Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completion_of(names: Names) -> Completion:
    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            with Operations.from_environment(answer_seconds=TIMEOUT_SECONDS) as client:
                return [item for item in names(client, incomplete) if item.value.startswith(incomplete)]
        except FoliotError:
            return []

    return complete


def _jobs(client: Operations, incomplete: str) -> Iterator[CompletionItem]:
    # Jobs are listed by name, so matching names follow the incomplete one.
    for job in client.page_of_jobs(after=incomplete).document["items"]:
        yield CompletionItem(job["name"], help=f"{job['task']}, {job['status']}")


def _queues(client: Operations, _incomplete: str) -> Iterator[CompletionItem]:
    for queue in client.list_queues().document["items"]:
        yield CompletionItem(queue["name"], help=f"{queue['ready']['count']} ready")


def _workers(client: Operations, _incomplete: str) -> Iterator[CompletionItem]:
    for worker in client.list_workers().document["items"]:
        yield CompletionItem(worker["id"], help=worker["name"])


def _runs(client: Operations, _incomplete: str) -> Iterator[CompletionItem]:
    for run in client.list_runs({}, limit=RUNS_SHOWN).document["items"]:
        yield CompletionItem(run["id"], help=f"{run['name'] or run['task']}, {run['status']}")


def _workflows(client: Operations, _incomplete: str) -> Iterator[CompletionItem]:
    for workflow in client.list_workflows({}, limit=RUNS_SHOWN).document["items"]:
        yield CompletionItem(workflow["id"], help=f"{workflow['name'] or ''}, {workflow['status']}")


def _tasks(client: Operations, _incomplete: str) -> Iterator[CompletionItem]:
    for task in client.list_tasks(limit=TASKS_SHOWN).document["items"]:
        yield CompletionItem(task["name"], help=task["description"])


job_names, queue_names, worker_ids, run_ids, workflow_ids, task_names = map(
    _completion_of, (_jobs, _queues, _workers, _runs, _workflows, _tasks)
)
