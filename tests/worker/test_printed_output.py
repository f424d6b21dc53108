# ruff: noqa: T201
"""Printed and logged text of a task is stored in the output of its own run: in order, and never in that of another."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import foliot
from foliot.config import Config
from foliot.model.run import RunView
from foliot.model.states import RunState
from foliot.store.store import Store
from foliot.worker.logged_output import line_of
from foliot.worker.printed_output import RunStream, SysModule, capturing
from tests.support.waiting import until
from tests.support.workers import QUICK, ended, submit, worker_node
from tests.worker import printing_app

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
KINDS = ["on_the_loop", "waiting_on_the_loop", "in_a_thread", "in_a_process"]


def output_of(view: RunView) -> str:
    return (view.output or b"").decode()


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("kind", KINDS)
async def test_prints_and_log_records_are_in_the_output_in_order(store: Store, kind: str) -> None:
    async with worker_node(store, printing_app.app):
        view = await ended(store, await submit(store, kind, payload='{"word": "cat"}'))
    assert view.state is RunState.SUCCEEDED
    lines = output_of(view).splitlines()
    expected = [
        "printed cat",
        f"{TIME} INFO root says cat",
        f"{TIME} WARNING shop.mail: mail says cat",
        "on standard error cat",
        f"{TIME} INFO shop.quiet: does not propagate cat",
        f"{TIME} INFO by the context cat",
        "bytes cat",
    ]
    assert len(lines) == len(expected), lines
    for line, pattern in zip(lines, expected, strict=True):
        assert re.fullmatch(pattern, line), lines


@pytest.mark.parametrize("kind", KINDS)
async def test_runs_that_print_at_the_same_time_do_not_mix(store: Store, kind: str) -> None:
    async with worker_node(store, printing_app.app):
        runs = {n: await submit(store, f"many_{kind}", payload=f'{{"word": "run{n}"}}') for n in range(8)}
        views = {n: await ended(store, run) for n, run in runs.items()}
    for number, view in views.items():
        assert output_of(view).splitlines() == [f"run{number} {line}" for line in range(50)]


async def test_threads_of_a_task_print_into_its_run(store: Store) -> None:
    app = foliot.App()

    async def shout(word: str) -> None:
        await asyncio.sleep(0)
        print(word, "in a task")

    @app.task
    async def work(word: str) -> None:
        await asyncio.gather(shout(word), asyncio.to_thread(print, word, "in a thread"))

    async with worker_node(store, app):
        runs = {word: await submit(store, "work", payload=f'{{"word": "{word}"}}') for word in ("one", "two")}
        for word, run in runs.items():
            lines = output_of(await ended(store, run)).splitlines()
            assert sorted(lines) == [f"{word} in a task", f"{word} in a thread"]


async def test_output_after_the_end_goes_to_the_terminal(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    app, left = foliot.App(), dict[str, Any]()

    @app.task
    async def leaves(word: str) -> None:
        async def later() -> None:
            await left["go"].wait()
            print(f"late {word}")

        left["go"] = asyncio.Event()
        left["task"] = asyncio.create_task(later())
        print(f"early {word}")

    @app.task
    async def other() -> None:
        print("other")
        left["go"].set()
        await left["task"]

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "leaves", payload='{"word": "bird"}'))
        other_view = await ended(store, await submit(store, "other"))
    assert output_of(view) == "early bird\n"
    assert output_of(other_view) == "other\n"
    assert capsys.readouterr().out == "late bird\n"


async def test_an_abandoned_sync_function_prints_to_the_terminal(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    app, go, gone = foliot.App(), threading.Event(), threading.Event()

    @app.task(timeout=0.2, retries=0)
    def stuck() -> None:
        print("stuck")
        go.wait(60)
        print("free")
        gone.set()

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "stuck"))
        go.set()
        await asyncio.to_thread(gone.wait, 60)
    assert (view.reason, output_of(view)) == ("timeout", "stuck\n")
    assert capsys.readouterr().out == "free\n"


async def test_a_task_that_replaces_standard_output_replaces_it_for_itself(store: Store) -> None:
    app, both = foliot.App(), threading.Barrier(2)

    @app.task
    def redirects() -> str:
        kept = io.StringIO()
        with contextlib.redirect_stdout(kept):
            both.wait(60)
            print("redirected")
            both.wait(60)
        print("back again")
        sys.stdout = io.StringIO()
        print("swallowed")
        return kept.getvalue()

    @app.task
    def prints() -> None:
        both.wait(60)
        print("not redirected")
        both.wait(60)

    @app.task
    async def prints_later() -> None:
        print("as ever")

    async with worker_node(store, app):
        redirecting, printing = await submit(store, "redirects"), await submit(store, "prints")
        view = await ended(store, redirecting)
        assert (view.result, output_of(view)) == ("redirected\n", "back again\n")
        assert output_of(await ended(store, printing)) == "not redirected\n"
        assert output_of(await ended(store, await submit(store, "prints_later"))) == "as ever\n"


async def test_a_tee_of_standard_output_does_not_loop(store: Store) -> None:
    app = foliot.App()

    class Tee(io.StringIO):
        def __init__(self, other: Any) -> None:
            super().__init__()
            self.other = other

        def write(self, text: str) -> int:
            self.other.write(text)
            return super().write(text)

    @app.task
    async def work() -> str:
        sys.stdout = tee = Tee(sys.stdout)
        print("twice")
        return tee.getvalue()

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "work"))
    assert (view.result, output_of(view)) == ("twice\n", "twice\n")


async def test_log_handlers_of_a_task_duplicate_nothing(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    app = foliot.App()

    @app.task
    def work(word: str) -> None:
        logging.basicConfig(level=logging.INFO, format="HANDLER %(message)s", force=True)
        logging.getLogger("shop").info("said %s", word)

    async with worker_node(store, app):
        for word in ("one", "two"):
            view = await ended(store, await submit(store, "work", payload=f'{{"word": "{word}"}}'))
            assert re.fullmatch(rf"{TIME} INFO shop: said {word}\n", output_of(view))
    assert capsys.readouterr().err == "HANDLER said one\nHANDLER said two\n"


async def test_hostile_prints_are_harmless(store: Store) -> None:
    app = foliot.App()

    @app.task(retries=0)
    def hostile() -> None:
        print("x" * 10_000_000)
        print("\ud800 \x1b[31mred\x00\r", end="")
        sys.stdout.buffer.write(b"\xff\xfe")
        sys.stdout.close()
        sys.stdout.flush()
        sys.stdout.reconfigure(encoding="ascii")  # type: ignore[union-attr]
        with contextlib.suppress(io.UnsupportedOperation):
            sys.stdout.detach()  # type: ignore[union-attr]
        for _ in range(20_000):
            print("a", end="")
        print("the end")

    @app.task
    async def fine() -> None:
        print("fine")

    config = Config(poll_seconds=0.05, output_max_bytes=10_000)
    async with worker_node(store, app, config=config):
        view = await ended(store, await submit(store, "hostile"))
        assert output_of(await ended(store, await submit(store, "fine"))) == "fine\n"
    assert view.state is RunState.SUCCEEDED
    assert view.output is not None
    assert view.output.endswith(b"aaathe end\n")
    assert len(view.output) < 10_100
    assert b"bytes dropped" in view.output


def test_an_unformattable_log_record_is_still_shown() -> None:
    record = logging.LogRecord("shop", logging.WARNING, "", 0, "%d of them", ("not a number",), None)
    assert re.fullmatch(rf"{TIME} WARNING shop: '%d of them' can't be formatted: TypeError\n", line_of(record).decode())


async def test_prints_can_be_followed_while_the_task_runs(store: Store) -> None:
    app, go = foliot.App(), asyncio.Event()

    @app.task
    async def work() -> None:
        print("under way")
        await go.wait()

    async with worker_node(store, app):
        run = await submit(store, "work")

        async def shown() -> bool:
            return await store.logs.read_logs(run.id, 1, 0, parts=10) == b"under way\n"

        await until(shown)
        go.set()
        await ended(store, run)


async def test_unretrieved_errors_of_asyncio_are_not_in_the_output_of_a_run(store: Store) -> None:
    app = foliot.App()

    @app.task
    async def work() -> None:
        logging.getLogger("asyncio").error("Task exception was never retrieved")

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "work"))
    assert "never retrieved" not in output_of(view)


async def test_a_thread_that_a_process_task_left_running_prints_into_no_other_run(store: Store) -> None:
    async with worker_node(store, printing_app.app, slots=1):
        first = await ended(store, await submit(store, "leaves_a_thread"))
        second = await ended(store, await submit(store, "after_the_thread"))
    assert first.result == second.result, "the same process"
    assert output_of(first) == "first\n"
    assert output_of(second) == "second\n"


@pytest.mark.parametrize(("echo", "shown"), [("always", "hello \\x1b[31m\n"), ("never", ""), ("auto", "")])
async def test_prints_are_echoed_to_the_terminal_on_request(
    store: Store, capsys: pytest.CaptureFixture[str], echo: Any, shown: str
) -> None:
    app = foliot.App()

    @app.task
    async def work() -> None:
        print("hello \x1b[31m")

    async with worker_node(store, app, config=Config(poll_seconds=QUICK.poll_seconds, echo_output=echo)):
        await ended(store, await submit(store, "work"))
    assert capsys.readouterr().out == shown


def test_standard_streams_are_restored_at_the_end() -> None:
    before, kind = sys.stdout, type(sys)
    with capturing("never"), capturing("never"):
        assert isinstance(sys.stdout, RunStream)
        assert isinstance(sys, SysModule)
        with contextlib.redirect_stdout(io.StringIO()) as kept:
            print("outside of a run")
        assert kept.getvalue() == "outside of a run\n"
    assert sys.stdout is before
    assert type(sys) is kind
