"""Foliot in Flask: tasks that run in the application's context, and answers to Foliot's errors.

web = Flask(__name__)
app = App(web)
answer_errors(web)

@app.task
def send_invoice(customer_id: int) -> str:
    return current_app.config["SENDER"]
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

from flask import Flask, jsonify
from flask.typing import ResponseReturnValue

from foliot.errors import Busy, FoliotError, Unreachable
from foliot.sdk import app as sdk


class App(sdk.App):
    """A `foliot.App` whose tasks run in the context of a Flask application.

    Args:
        web: The application, or a function that makes it. The function is called once, by the first task that runs.
    """

    def __init__(self, web: Flask | Callable[[], Flask], **server: Any) -> None:
        super().__init__(**server)
        self._web = web
        self._lock = threading.Lock()

    @property
    def web(self) -> Flask:
        with self._lock:
            if not isinstance(self._web, Flask):
                self._web = self._web()
            return self._web

    def around(self, function: sdk.Function) -> sdk.Function:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def in_context_async(*args: Any, **kwargs: Any) -> Any:
                with self.web.app_context():
                    return await function(*args, **kwargs)

            return in_context_async

        @functools.wraps(function)
        def in_context(*args: Any, **kwargs: Any) -> Any:
            with self.web.app_context():
                return function(*args, **kwargs)

        return in_context


def answer_errors(web: Flask) -> None:
    """Answers 429 if Foliot is busy and 503 if it does not answer, both with `Retry-After`."""
    web.register_error_handler(Busy, _answered)
    web.register_error_handler(Unreachable, _answered)


def _answered(error: FoliotError) -> ResponseReturnValue:
    status, seconds = (429, error.retry_after) if isinstance(error, Busy) else (503, 1)
    return jsonify(detail=error.detail, code=error.code), status, {"Retry-After": str(seconds)}
