"""Foliot in a real Flask application."""

from __future__ import annotations

import pytest
from flask import Flask, current_app

from foliot.errors import FoliotError, QueueFull, Unreachable
from foliot.integrations.flask import App, answer_errors
from foliot.testing import inline


def test_tasks_run_in_the_context_of_an_application_that_is_made_once() -> None:
    made: list[Flask] = []

    def create() -> Flask:
        made.append(web := Flask("shop"))
        web.config["SENDER"] = "shop@example.com"
        return web

    app = App(create)

    @app.task
    def plain(to: str) -> str:
        return f"{current_app.config['SENDER']} to {to}"

    @app.task
    async def asynchronous(to: str) -> str:
        return f"{current_app.config['SENDER']} to {to}"

    assert made == []
    with inline(app):
        assert plain.submit(to="ada").result() == "shop@example.com to ada"
        assert asynchronous.submit(to="bob").result() == "shop@example.com to bob"
    assert len(made) == 1
    with pytest.raises(RuntimeError, match="application context"):
        plain("eve")


def test_arguments_are_checked_against_the_task_itself() -> None:
    app = App(Flask("shop"))

    @app.task
    def plain(to: str) -> str:
        return to

    with inline(app), pytest.raises(FoliotError, match=r"form|to"):
        plain.submit(form="ada")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("error", "status", "seconds"), [(QueueFull("full", retry_after=7), 429, "7"), (Unreachable("away"), 503, "1")]
)
def test_errors_are_answered_with_a_time_to_come_back(error: FoliotError, status: int, seconds: str) -> None:
    web = Flask("shop")
    answer_errors(web)

    @web.get("/")
    def index() -> str:
        raise error

    answer = web.test_client().get("/")
    assert (answer.status_code, answer.headers["Retry-After"]) == (status, seconds)
    assert answer.json is not None
    assert answer.json["code"] == error.code
