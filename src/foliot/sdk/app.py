"""`foliot.App`: the tasks of an application, by name.

    import foliot

    app = foliot.App()

    @app.task(queue="mail", retries=5, timeout=30)
    async def send_invoice(customer_id: int) -> str:
        return f"sent to {customer_id}"

`foliot worker shop.tasks:app` then runs jobs that name `send_invoice`, with the job's payload as keyword arguments. Async functions run on
the worker's event loop, plain ones in threads, and those declared with `process=True` in Python processes that can be killed.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import msgspec

from foliot.errors import ApplicationError, Invalid
from foliot.model.retry import Backoff
from foliot.model.run import RunOptions

Function = Callable[..., Any]

DEFAULT_QUEUE = "default"
NAME_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")
BUILT_IN_TASKS = frozenset({"http", "shell", "simulate"})


@dataclass(frozen=True, slots=True)
class Task:
    """A function that jobs can name, and what it says of itself."""

    name: str
    function: Function
    queue: str
    options: RunOptions
    in_process: bool = False
    """Whether it runs in a Python process of its own."""

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function here and now, with no job involved."""
        return self.function(*args, **kwargs)


class App:
    """A registry of tasks."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}

    @overload
    def task(self, function: Function, /) -> Task: ...

    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        retries: int | None = None,
        timeout: float | None = None,
        backoff: Backoff | None = None,
        process: bool = False,
    ) -> Callable[[Function], Task]: ...

    def task(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        retries: int | None = None,
        timeout: float | None = None,
        backoff: Backoff | None = None,
        process: bool = False,
    ) -> Task | Callable[[Function], Task]:
        """Registers a function under its own name, or the one given. `timeout` is in seconds.

        `process=True` runs it in a Python process of its own: for code that must be killable, or that keeps a core busy.
        """

        def register(function: Function) -> Task:
            options = RunOptions(retries=retries, timeout_seconds=timeout, backoff=backoff)
            task = Task(name or function.__name__, function, queue, options, process)
            self._add(task)
            return task

        return register if function is None else register(function)

    def _add(self, task: Task) -> None:
        for what, value in (("task name", task.name), ("queue", task.queue)):
            if not NAME_PATTERN.fullmatch(value):
                raise Invalid(f"{what} {value!r}: letters, digits, and . _ : - are allowed, up to 200", field=what)
        try:
            msgspec.convert(msgspec.to_builtins(task.options), RunOptions)
        except msgspec.ValidationError as error:
            raise Invalid(f"task {task.name!r}: {str(error).replace('`$.', '`')}", field="options") from None
        if task.in_process and not re.fullmatch(r"[\w.]+", getattr(task.function, "__qualname__", "")):
            raise Invalid(f"task {task.name!r}: process=True takes a function at the top of a module", field="process")
        if task.name in self.tasks or task.name in BUILT_IN_TASKS:
            raise Invalid(f"there is a task named {task.name!r} already; give this one another name=", field="name")
        self.tasks[task.name] = task


def load_app(reference: str) -> App:
    """The app that `module:attribute` names; modules in the working directory count."""
    module_name, _, attribute = reference.partition(":")
    attribute = attribute or "app"
    if not module_name or module_name.startswith("."):
        raise ApplicationError(f"{reference!r}: an app is named as MODULE:APP, for example shop.tasks:app")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise ApplicationError(f"{reference!r}: there is no module {error.name!r} in {here} or on the Python path") from None
        raise
    app = getattr(module, attribute, None)
    if not isinstance(app, App):
        found = "nothing" if app is None else f"a {type(app).__name__}"
        raise ApplicationError(f"{reference!r}: expected a foliot.App in {module_name}.{attribute}, found {found}")
    return app
