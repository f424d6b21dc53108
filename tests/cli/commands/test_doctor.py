"""`foliot doctor` with and without a server and a database, and without the secrets of either."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from foliot.cli.main import cli
from foliot.config import SECRETS
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.runs import finish, insert
from tests.support.server import PostgresServer
from tests.support.terminal import Shell, Terminal
from tests.support.waiting import until


def texts(report: dict[str, Any]) -> list[str]:
    return [finding["text"] for finding in report["findings"]]


async def test_a_server_is_looked_at_over_http(shell: Shell, tmp_path: Path) -> None:
    async def is_well() -> bool:
        # In a thread, because the command runs an event loop of its own.
        ended = await asyncio.to_thread(shell.foliot, "doctor", "--file", str(tmp_path / "report.json"))
        return ended.code == 0

    await until(is_well)
    report = json.loads((tmp_path / "report.json").read_text())
    assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == 0o600
    server = report["server"]
    assert server["url"] == shell.url
    assert server["readiness"] == {"status": "ready"}
    assert [process["part"] for process in server["installation"]["processes"]] == ["scheduler", "server", "worker"]
    assert server["database"]["facts"]["version"]
    assert {"queues", "workers", "settings", "dead_letters"} <= set(server)
    assert report["machine"]["packages"]["asyncpg"]
    assert report["database"] is None


async def test_a_database_is_looked_at_without_a_server(
    terminal: Terminal, store: Store, database_url: str, closed_port: int
) -> None:
    await insert(store, queue="mail")
    failed = await finish(store, RunState.FAILED, queue="other", error="no route to postgresql://me:hunter22@db/x")
    ended = terminal.foliot(
        "doctor", "--json", database_url=database_url, url=f"http://127.0.0.1:{closed_port}", retention_days="9"
    )
    assert ended.code == 1, ended.err
    report = json.loads(ended.out)
    assert report["server"] is None
    assert report["machine"]["settings"]["retention_days"] == {"value": 9, "source": "environment"}
    database = report["database"]
    (failure,) = database["last_failures"]
    assert (failure["run_id"], failure["kind"]) == (str(failed), "ValueError")
    assert failure["message"] == "no route to postgresql://me:***@db/x"
    assert {"facts", "tables", "workers", "schedulers", "queues", "exports", "archives", "alerts", "pauses"} <= set(
        database
    )
    assert abs(database["clock_difference_seconds"]) < 60
    assert any(text.startswith("No scheduler node is alive") for text in texts(report))
    assert any(text.startswith("No server answers") for text in texts(report))
    assert report["findings"][0]["severity"] == "problem"


async def test_a_database_without_a_schema_is_a_problem(
    terminal: Terminal, postgres: PostgresServer, closed_port: int
) -> None:
    name = await postgres.empty()
    ended = terminal.foliot("doctor", database_url=postgres.url_of(name), url=f"http://127.0.0.1:{closed_port}")
    assert ended.code == 1
    assert "The schema does not fit this version: the database lacks migration 1" in ended.out
    assert "run `foliot migrate`" in ended.out
    report = json.loads((terminal.directory / "foliot-doctor.json").read_text())
    assert report["database"]["facts"]["version"]
    await postgres.drop(name)


def test_nothing_to_look_at_is_a_problem(terminal: Terminal, closed_port: int) -> None:
    url = f"http://127.0.0.1:{closed_port}"
    ended = terminal.foliot("doctor", url=url, data=str(terminal.directory / "data"))
    assert ended.code == 1
    assert "problem: There is nothing to look at" in ended.out
    assert f"no Foliot answers at {url}" in ended.out


def test_a_wrong_configuration_is_a_finding_and_no_end(terminal: Terminal, closed_port: int) -> None:
    ended = terminal.foliot("doctor", "--json", port="ninety", url=f"http://127.0.0.1:{closed_port}")
    assert ended.code == 1
    report = json.loads(ended.out)
    assert any("port" in text and "configuration" in text for text in texts(report))
    assert report["machine"]["settings"] is None
    assert "FOLIOT_PORT" in report["machine"]["variables"]


def test_a_file_that_cannot_be_written_is_refused(terminal: Terminal, closed_port: int) -> None:
    ended = terminal.foliot("doctor", "--file", "no/where", url=f"http://127.0.0.1:{closed_port}")
    assert ended.code == 2
    assert "no/where: No such file or directory" in ended.err


def test_no_secret_is_in_the_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, closed_port: int) -> None:
    secrets = {name: f"seKret-{number}" for number, name in enumerate(SECRETS)}
    valid = {
        "database_url": f"postgresql://me:{secrets['database_url']}@127.0.0.1:{closed_port}/x",
        "database_direct_url": f"postgresql://me:{secrets['database_direct_url']}@127.0.0.1:{closed_port}/x",
        "wait_for_row_url": f"postgresql://me@127.0.0.1:{closed_port}/x?password={secrets['wait_for_row_url']}",
        "dispatch": "redis",
        "dispatch_url": f"redis://:{secrets['dispatch_url']}@127.0.0.1:{closed_port}/0",
        "otel_endpoint": "http://127.0.0.1:4318",
        "otel_headers": f"authorization={secrets['otel_headers']}",
        "token": "seKret-token",
        "url": f"http://127.0.0.1:{closed_port}",
    }
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        # Some of these texts are no valid settings, so the configuration is refused.
        for name, value in (secrets | valid).items():
            patch.setenv(f"FOLIOT_{name.upper()}", value)
        refused = CliRunner().invoke(cli, ["doctor", "--json"])
    assert "seKret" not in refused.output
    assert json.loads(refused.output)["machine"]["settings"] is None
    for name, value in valid.items():
        monkeypatch.setenv(f"FOLIOT_{name.upper()}", value)
    accepted = CliRunner().invoke(cli, ["doctor", "--json"])
    assert "seKret" not in accepted.output
    assert json.loads(accepted.output)["machine"]["settings"]["dispatch"]["value"] == "redis"
