"""Real processes with the URL of a broker show its password nowhere, whatever happens to the broker."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.brokers.server import BrokerServer
from tests.support.brokers.topics import READERS
from tests.support.processes import FoliotProcess
from tests.support.terminal import Terminal

pytestmark = pytest.mark.process
TOPICS = ["foliot-events", "dead_letter_queue"]


def passwords_of(server: BrokerServer) -> list[str]:
    password = urlsplit(server.url).password
    assert password
    return [password, unquote(password)]


async def test_logs_process_lists_and_the_check_show_no_password(
    server: BrokerServer, database_url: str, tmp_path: Path
) -> None:
    reader = READERS[server.kind](server)
    await reader.open(TOPICS)
    settings = {"dispatch": server.kind, "dispatch_url": server.url, "events_url": server.url}
    environment = {f"FOLIOT_{name.upper()}": value for name, value in settings.items()}
    environment["FOLIOT_DATABASE_URL"] = database_url
    shown = []
    async with (
        FoliotProcess("scheduler", environment=environment) as scheduler,
        FoliotProcess("worker", environment=environment) as worker,
    ):
        for process in (scheduler, worker):
            await process.event("ProcessStarted")
        shown += [" ".join(one.cmdline()) for process in (scheduler, worker) for one in process.tree()]
        server.kill()
        try:
            await worker.event("BrokerLost")
        finally:
            server.start()
        await worker.event("BrokerReturned")
        shown += [*scheduler.lines, *worker.lines]
    checked = Terminal(tmp_path).foliot("check", **settings, database_url=database_url)
    assert "***" in checked.out
    shown += [checked.out, checked.err]
    for password in passwords_of(server):
        assert not [line for line in shown if password in line]
