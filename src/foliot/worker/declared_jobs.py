"""The recurring jobs that an app declares with `@app.task(cron=...)`."""

from __future__ import annotations

from foliot.sdk.app import App
from foliot.submission.declared_jobs import DeclaredJob


def jobs_of(app: App) -> list[DeclaredJob]:
    return [
        DeclaredJob(task.name, task.queue, task.schedule, tuple(task.options.tags or ()))
        for task in app.tasks.values()
        if task.schedule is not None
    ]
