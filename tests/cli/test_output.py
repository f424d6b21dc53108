"""`--watch`: redraws in place on a terminal, prints one result after the other elsewhere, and survives an absent
server."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from foliot.cli.output import ENTER, HOME, LEAVE, cropped, frame
from tests.support.cluster import Cluster
from tests.support.http import Answering, answer, answering
from tests.support.terminal import Screen, Shell

pytestmark = pytest.mark.process

PROBLEM = {"code": "store_unavailable", "detail": "the database does not answer; try again"}
AWAY = answer("503 Service Unavailable", json.dumps(PROBLEM).encode())
SGR = re.compile(r"\x1b\[[0-9;]*m")


def workers(*names: str) -> bytes:
    shown = [
        {
            "id": f"id of {name}", "name": name, "health": "healthy", "running": 0, "left_running": 0, "slots": 1,
            "queues": {"default": 1},
            "labels": {}, "last_beat_at": "2026-01-01T00:00:00Z", "started_at": "2026-01-01T00:00:00Z",
        }
        for name in names
    ]  # fmt: skip
    return answer(body=json.dumps({"items": shown}).encode())


def frames(shown: str) -> list[list[str]]:
    """The lines of each drawing, without colours."""
    drawn = shown.split(LEAVE)[0].split(HOME)[1:]
    return [[line.split("\x1b[K")[0].rstrip() for line in SGR.sub("", one).split("\r\n")] for one in drawn]


async def watching(server: Answering, steps: Callable[[Screen], Any], *arguments: str, **settings: Any) -> Screen:
    with Screen(server.url, "workers", "--watch", "--interval", "0.1", *arguments, **settings) as screen:
        await asyncio.to_thread(steps, screen)
    return screen


async def test_a_terminal_is_redrawn_and_restored_on_ctrl_c() -> None:
    async with answering() as server:
        server.answers["/v1/workers"] = workers("ann")

        def steps(screen: Screen) -> None:
            first = screen.until("ann")
            assert ENTER in first
            assert "\x1b[32mhealthy" in first
            server.answers["/v1/workers"] = workers("bob")
            screen.until("bob")
            screen.process.send_signal(signal.SIGINT)
            assert screen.end() == 130

        screen = await watching(server, steps)
    before, _, after = screen.shown.partition(LEAVE)
    assert before.count(ENTER) == 1
    assert next(line for line in frames(screen.shown)[0] if line).startswith("Every 0.1 s, last refresh at ")
    assert not any("ann" in line for line in frames(screen.shown)[-1])
    # The last result stays on the screen.
    assert "bob" in after
    assert "Traceback" not in screen.shown


async def test_a_terminal_is_restored_on_sigterm() -> None:
    async with answering() as server:
        server.answers["/v1/workers"] = workers("ann")

        def steps(screen: Screen) -> None:
            screen.until("ann")
            screen.process.send_signal(signal.SIGTERM)
            assert screen.end() == 143

        assert LEAVE in (await watching(server, steps)).shown


async def test_an_absent_server_is_reported_and_awaited() -> None:
    async with answering() as server:
        server.answers["/v1/workers"] = workers("ann")

        def steps(screen: Screen) -> None:
            screen.until("ann")
            server.answers["/v1/workers"] = AWAY
            said = screen.until("Showing the last known state.")
            assert "the database does not answer; try again; retrying" in SGR.sub("", said)
            screen.until("ann")
            server.answers["/v1/workers"] = workers("bob")
            screen.until("bob")
            screen.process.send_signal(signal.SIGINT)
            assert screen.end() == 130

        await watching(server, steps, columns=160)


async def test_watching_an_unknown_server_fails_at_once(closed_port: int) -> None:
    def steps() -> int:
        with Screen(f"http://127.0.0.1:{closed_port}", "workers", "--watch") as screen:
            code = screen.end()
        assert "no Foliot answers" in screen.shown
        assert ENTER not in screen.shown
        return code

    assert await asyncio.to_thread(steps) == 1


@pytest.mark.parametrize("columns", [1, 20, 40])
async def test_a_small_terminal_shows_a_part(columns: int) -> None:
    async with answering() as server:
        server.answers["/v1/workers"] = workers(*(f"worker-{number}" for number in range(30)))

        def steps(screen: Screen) -> None:
            screen.until(HOME)
            screen.until(HOME)
            screen.process.send_signal(signal.SIGINT)
            assert screen.end() == 130

        screen = await watching(server, steps, columns=columns, lines=10)
    drawn = frames(screen.shown)[0]
    assert len(drawn) == 10
    assert max(map(len, drawn)) <= max(columns - 1, 1)
    assert drawn[-1] == "... 24 more lines"[: max(columns - 1, 1)].rstrip()


async def test_no_color_is_respected() -> None:
    async with answering() as server:
        server.answers["/v1/workers"] = workers("ann")

        def steps(screen: Screen) -> None:
            screen.until("ann")
            screen.process.send_signal(signal.SIGINT)
            assert screen.end() == 130

        screen = await watching(server, steps, NO_COLOR="1")
    assert not SGR.search(screen.shown)
    assert HOME in screen.shown


async def test_without_a_terminal_each_result_is_a_line_of_json_or_a_table() -> None:
    async with answering() as server:
        server.answers["/v1/workers"] = workers("ann")

        def piped(*arguments: str) -> subprocess.Popen[str]:
            return subprocess.Popen(
                [sys.executable, "-m", "foliot", "workers", "-w", "--interval", "0.1", *arguments],
                env={"FOLIOT_URL": server.url, "PATH": ""}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip

        def read_json() -> None:
            with piped("--json") as process:
                assert process.stdout is not None
                assert process.stderr is not None
                for _ in range(2):
                    assert json.loads(process.stdout.readline())["items"][0]["name"] == "ann"
                server.answers["/v1/workers"] = AWAY
                assert process.stderr.readline() == "foliot: the database does not answer; try again; retrying\n"
                server.answers["/v1/workers"] = workers("bob")
                assert process.stderr.readline() == "foliot: connection restored\n"
                while json.loads(process.stdout.readline())["items"][0]["name"] != "bob":
                    pass
                process.send_signal(signal.SIGINT)
                assert process.wait(timeout=30) == 130
                assert "Traceback" not in process.stderr.read()

        def read_tables() -> None:
            with piped() as process:
                assert process.stdout is not None
                header, row, between, again = (process.stdout.readline() for _ in range(4))
                assert header.split()[:2] == ["WORKER", "NAME"]
                assert "bob" in row
                assert (between, again) == ("\n", header)
                assert "\x1b" not in row
                process.send_signal(signal.SIGINT)
                assert process.wait(timeout=30) == 130

        await asyncio.to_thread(read_json)
        await asyncio.to_thread(read_tables)


@pytest.mark.parametrize(
    "arguments",
    [["runs"], ["jobs"], ["queues"], ["workers"], ["workflows"], ["dead"], ["dead", "list"]],
    ids=" ".join,
)
def test_every_list_can_be_watched(cluster: Cluster, arguments: list[str]) -> None:
    with Screen(cluster.url, *arguments, "--interval", "0.1", columns=60, lines=12) as screen:
        screen.until("Ctrl-C to quit.")
        screen.until("Ctrl-C to quit.")
        screen.process.send_signal(signal.SIGINT)
        assert screen.end() == 130
    assert "Traceback" not in screen.shown


def test_invalid_watch_options_are_refused(shell: Shell) -> None:
    assert "must be at least 0.1 seconds" in shell.refusal("runs", "--interval", "0", code=2)
    assert "can't be combined with --watch" in shell.refusal("workflows", "show", "x", "--wait", "--watch", code=2)


def test_lines_are_cut_at_the_terminal_width_and_colours_end() -> None:
    assert cropped("\x1b[32mhealthy\x1b[0m and well", 4) == "\x1b[32mheal\x1b[0m"
    assert cropped("日本語", 5) == "日本"
    assert cropped("abc", 10) == "abc"
    assert frame("a\nb", "title").count("\n") == 3
