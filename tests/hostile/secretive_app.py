"""Tasks of an application that has secrets of its own."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import time

import foliot

app = foliot.App()


@app.task
def password() -> str | None:
    return os.environ.get("APP_PASSWORD")


@app.task(process=True)
def password_in_a_process() -> str | None:
    return os.environ.get("APP_PASSWORD")


@app.task
def variables_of_a_child() -> list[str]:
    """Foliot's settings with a secret, as a process that the task starts would inherit them."""
    said = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    return [line for line in said.splitlines() if line.startswith("FOLIOT_DATABASE")]


@app.task(process=True, retries=0)
def forks_and_stays(mark: str) -> None:
    """A fork is concealed like its parent; a program that it starts is not."""
    context = multiprocessing.get_context("fork")
    for work in (time.sleep, _sleeps_elsewhere):
        context.Process(target=work, args=(600,) if work is time.sleep else (mark,)).start()
    subprocess.run(["sh", "-c", "sleep 600; true", mark], check=False)


def _sleeps_elsewhere(mark: str) -> None:
    subprocess.run(["sh", "-c", "sleep 600; true", mark], check=False)
