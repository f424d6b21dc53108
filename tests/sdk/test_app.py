"""Declaring tasks, and finding the app that a command line names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import foliot
from foliot.errors import ApplicationError, Invalid
from foliot.model.run import RunOptions
from foliot.sdk.app import DEFAULT_QUEUE, App
from foliot.sdk.app_loading import load_app

WriteModule = Callable[[str, str], None]


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteModule]:
    """Writes a module into the working directory, and unloads its imports afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def write(name: str, source: str) -> None:
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def greet(name: str = "world") -> str:
    return f"hello {name}"


def test_a_bare_decorator_registers_a_function_under_its_own_name(app: App) -> None:
    @app.task
    def send_invoice() -> None: ...

    assert app.tasks == {"send_invoice": send_invoice}
    assert (send_invoice.queue, send_invoice.options) == (DEFAULT_QUEUE, RunOptions())


def test_a_decorator_sets_the_options_of_its_runs(app: App) -> None:
    backoff = foliot.Backoff(kind="fixed", base_seconds=1)

    @app.task(name="billing.invoice:send", queue="mail", retries=5, timeout=30, backoff=backoff)
    async def send_invoice() -> None: ...

    assert list(app.tasks) == ["billing.invoice:send"]
    assert (send_invoice.queue, send_invoice.options) == (
        "mail",
        RunOptions(retries=5, timeout_seconds=30, backoff=backoff),
    )


def test_retried_failures_are_given_by_class_name_or_exit_code(app: App) -> None:
    task = app.task(retry_on=[ConnectionError, "HTTPError", 75], never_on=[foliot.FoliotError], max_snoozes=7)(greet)
    assert task.options.retry_on == ("builtins.ConnectionError", "HTTPError", 75)
    assert task.options.never_on == ("foliot.errors.FoliotError",)
    assert task.options.max_snoozes == 7


def test_a_decorator_with_empty_parentheses_works(app: App) -> None:
    assert app.task()(greet) is app.tasks["greet"]


def test_a_task_can_be_called_as_a_function(app: App) -> None:
    task = app.task(greet)
    assert task() == "hello world"
    assert task(name="you") == "hello you"


async def test_async_functions_are_recognized(app: App) -> None:
    async def fetch() -> int:
        return 1

    assert not app.task(greet).is_async
    task = app.task(fetch)
    assert task.is_async
    assert await task() == 1


@pytest.mark.parametrize("name", ["a", "a.b:c-d_e", "0", "_", "x" * 200])
def test_names_of_letters_digits_and_some_punctuation_are_accepted(app: App, name: str) -> None:
    app.task(name=name, queue=name)(greet)
    assert app.tasks[name].queue == name


@pytest.mark.parametrize("name", ["a b", "é", "-a", ".a", "a/b", "a\n", "x" * 201])
@pytest.mark.parametrize("what", ["name", "queue"])
def test_other_names_are_refused(app: App, what: str, name: str) -> None:
    given: dict[str, Any] = {what: name}
    with pytest.raises(Invalid, match=r"letters, digits, and \. _ : -"):
        app.task(**given)(greet)
    assert app.tasks == {}


@pytest.mark.parametrize("name", ["greet", "shell", "simulate"])
def test_duplicate_names_and_names_of_built_in_tasks_are_refused(app: App, name: str) -> None:
    first = app.task(greet)
    with pytest.raises(Invalid, match=f"a task named '{name}' already exists"):
        app.task(name=name)(lambda: None)
    assert app.tasks == {"greet": first}


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ({"retries": -1}, "retries"),
        ({"retries": 1001}, "retries"),
        ({"retries": "3"}, "retries"),
        ({"timeout": 0}, "timeout_seconds"),
        ({"timeout": float("nan")}, "timeout_seconds"),
        ({"backoff": foliot.Backoff(base_seconds=-1)}, "backoff.base_seconds"),
        ({"retry_on": []}, "retry_on"),
        ({"never_on": [0]}, "never_on"),
        ({"max_snoozes": -1}, "max_snoozes"),
    ],
)
def test_options_out_of_range_are_refused_at_the_decorator(app: App, option: dict[str, Any], named: str) -> None:
    with pytest.raises(Invalid, match=f"greet.*{named}"):
        app.task(**option)(greet)
    assert app.tasks == {}


def test_an_app_is_found_by_module_and_attribute(write_module: WriteModule) -> None:
    write_module("shop/tasks", "import foliot\nhere = foliot.App()\n@here.task\ndef pack(): ...")
    assert list(load_app("shop.tasks:here").tasks) == ["pack"]


def test_the_default_attribute_is_app(write_module: WriteModule) -> None:
    write_module("shop_a", "import foliot\napp = foliot.App()")
    assert isinstance(load_app("shop_a"), App)


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ("nope:app", "there is no module 'nope'"),
        ("nope.deeper:app", "there is no module 'nope'"),
        ("shop_b.deeper:app", "there is no module 'shop_b.deeper'"),
        ("shop_b:nothing", "expected a foliot.App in shop_b.nothing, found nothing"),
        ("shop_b:number", "expected a foliot.App in shop_b.number, found a int"),
        ("shop_b:App", "expected a foliot.App in shop_b.App, found a type"),
        ("", "MODULE:APP"),
        (":app", "MODULE:APP"),
        (".shop_b:app", "MODULE:APP"),
        ("shop b:app", "there is no module 'shop b'"),
        ("shop_b.py:app", "there is no module 'shop_b.py'"),
    ],
)
def test_an_invalid_reference_is_refused_with_what_was_found(
    write_module: WriteModule, reference: str, complaint: str
) -> None:
    write_module("shop_b", "from foliot import App\nnumber = 17")
    with pytest.raises(ApplicationError) as refused:
        load_app(reference)
    assert repr(reference) in refused.value.detail
    assert complaint in refused.value.detail


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("import library_that_is_not_installed", "No module named 'library_that_is_not_installed'"),
        (
            "import foliot\napp = foliot.App()\n@app.task(retires=1)\ndef pack(): ...",
            "no option 'retires', did you mean 'retries'",
        ),
        ("def pack(:", "SyntaxError"),
    ],
)
def test_an_error_in_the_module_is_shown_from_its_frame_on(
    write_module: WriteModule, content: str, complaint: str
) -> None:
    write_module("shop_c", content)
    with pytest.raises(ApplicationError) as refused:
        load_app("shop_c:app")
    first, _, rest = refused.value.detail.partition("\n")
    assert first == "'shop_c:app': the module can't be imported"
    assert complaint in rest
    assert "shop_c.py" in rest
    assert "importlib" not in rest
