"""The demo fits the API and its own tasks, and is refused where it would mix with somebody's jobs."""

from __future__ import annotations

import click
import pytest

from foliot.cli.commands.up import for_the_demo
from foliot.config import BUILT_IN_TASKS, Config
from foliot.demo.shop import PAUSED_JOBS, TRIGGERED, jobs, workflows
from foliot.demo.tasks import app
from foliot.errors import ConfigurationError


def test_every_job_and_step_names_a_task_that_exists() -> None:
    known = set(app.tasks) | set(BUILT_IN_TASKS)
    steps = [step for workflow in workflows() for step in workflow["steps"]]
    named = {one["task"] for one in [*jobs("http://localhost"), *steps] if "task" in one}
    assert named <= known
    assert {*PAUSED_JOBS, *TRIGGERED} <= {one["name"] for one in [*jobs("http://localhost"), *workflows()]}


@pytest.mark.parametrize(
    ("settings", "task_app", "words"),
    [
        ({}, "shop:app", "--demo brings tasks of its own"),
        ({"database_url": "postgresql://localhost/shop"}, None, "unset FOLIOT_DATABASE_URL"),
        ({"host": "192.0.2.1"}, None, "loopback interface only"),
    ],
)
def test_the_demo_is_refused_where_it_is_not_alone(settings: dict[str, str], task_app: str | None, words: str) -> None:
    with pytest.raises((ConfigurationError, click.UsageError), match=words):
        for_the_demo(Config(**settings), task_app)  # type: ignore[arg-type]
