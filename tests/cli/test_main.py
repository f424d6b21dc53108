"""The command line from outside: its output, its streams and its exit codes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

import foliot
from foliot.cli.commands.worker import parse_queues, queues_of
from foliot.cli.main import COMMANDS
from foliot.errors import Invalid
from foliot.sdk.app import App
from foliot.store.migrate import known_migrations
from tests.support.server import PostgresServer
from tests.support.terminal import Terminal


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_help_lists_every_command_with_a_summary(terminal: Terminal) -> None:
    ended = terminal.foliot("--help")
    assert (ended.code, ended.err) == (0, "")
    for name, does in COMMANDS.items():
        assert any(line.split(maxsplit=1) == [name, does] for line in ended.out.splitlines())


def test_help_loads_no_command() -> None:
    code = (
        "import sys, click.testing, foliot.cli.main as m; click.testing.CliRunner().invoke(m.cli, ['--help']); "
        "print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert "foliot.cli.main" in loaded
    assert not {"foliot.cli.commands.up", "foliot.assembly", "asyncpg", "fastapi", "httpx", "uvicorn"} & set(loaded)


def test_the_version_is_printed(terminal: Terminal) -> None:
    assert terminal.foliot("--version").out == f"foliot, version {foliot.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--nope"], "No such option '--nope'"),
        (["nope"], "No such command 'nope'"),
        (["server", "--prot", "1"], "No such option '--prot'"),
        (["server", "--port", "x"], "'x' is not a valid integer"),
        (["up", "extra"], "unexpected extra argument"),
    ],
)
def test_an_invalid_command_line_exits_with_2_and_an_error(
    terminal: Terminal, arguments: list[str], complaint: str
) -> None:
    ended = terminal.foliot(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert complaint in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", ["check", "server", "scheduler", "worker", "up", "migrate"])
def test_every_command_refuses_a_bad_configuration_in_one_line(terminal: Terminal, command: str) -> None:
    (terminal.directory / "foliot.toml").write_text("retrys = 3")
    assert "unknown setting 'retrys', did you mean 'retries'?" in terminal.refusal(command)


def test_an_invalid_setting_is_refused_from_any_source(terminal: Terminal) -> None:
    assert " port: " in terminal.refusal("check", port="x")
    assert " port: " in terminal.refusal("server", "--port", "65536")
    assert "FOLIOT_PROT" in terminal.refusal("check", prot="1")
    said = terminal.refusal("migrate", database_url="postgresql://foliot:hunter2/@localhost/foliot")
    assert "database_url" in said
    assert "hunter2" not in said


def test_check_shows_every_setting_without_passwords_and_warns(terminal: Terminal) -> None:
    ended = terminal.foliot("check", database_url="postgresql://foliot:hunter2@db.example.com/foliot", port="8123")
    assert ended.code == 0
    assert "port = 8123\n" in ended.out
    assert "database_url = 'postgresql://foliot:***@db.example.com/foliot'\n" in ended.out
    assert ended.err.startswith("warning: database_url names another host")
    assert "hunter2" not in ended.out + ended.err


def test_check_as_json_is_for_programs(terminal: Terminal) -> None:
    ended = terminal.foliot(
        "check", "--json", database_direct_url="postgresql://foliot:hunter2@db.example.com/foliot", poll_seconds="11"
    )
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out)
    assert document["settings"]["poll_seconds"] == 11
    assert document["settings"]["database_direct_url"] == "postgresql://foliot:***@db.example.com/foliot"
    assert len(document["warnings"]) == 1


def test_a_port_in_use_is_reported(terminal: Terminal, taken_port: int) -> None:
    for command in ("server", "up"):
        said = terminal.refusal(command, "--port", str(taken_port))
        assert said == f"foliot: port {taken_port} on 127.0.0.1 is already in use; choose another with --port\n"


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        ("0.0.0.0", "tokens must not travel there unencrypted"),
        ("::", "tokens must not travel there unencrypted"),
        ("no-such-host.invalid", "host 'no-such-host.invalid': "),
        ("a..b", "host 'a..b': invalid host name"),
        ("", "host ''"),
    ],
)
def test_a_public_address_needs_tls_and_an_invalid_one_is_refused(
    terminal: Terminal, host: str, complaint: str
) -> None:
    assert complaint in terminal.refusal("server", "--host", host, "--port", "0")


def test_a_missing_app_is_reported(terminal: Terminal) -> None:
    for arguments in (["worker", "nope:app"], ["up", "--app", "nope:app"]):
        said = terminal.refusal(*arguments)
        assert said == f"foliot: 'nope:app': there is no module 'nope' in {terminal.directory} or on the Python path\n"


@pytest.mark.parametrize("command", ["migrate", "server", "scheduler", "worker"])
def test_an_unreachable_database_is_reported(terminal: Terminal, closed_port: int, command: str) -> None:
    ended = terminal.foliot(
        command,
        database_url=f"postgresql://foliot:hunter2@127.0.0.1:{closed_port}/foliot",
        database_retry_seconds="0.2",
        port="0",
        log_format="json",
    )
    assert (ended.code, ended.out) == (1, "")
    *logged, last = ended.err.splitlines()
    assert last.startswith("foliot: PostgreSQL: connect: ConnectionRefusedError")
    assert {json.loads(line)["event"] for line in logged} == {"StoreInterrupted"}
    assert "hunter2" not in ended.err


def test_a_missing_database_setting_gets_advice(terminal: Terminal) -> None:
    said = terminal.refusal("migrate", data=str(terminal.directory / "nothing"))
    assert "set FOLIOT_DATABASE_URL, or start `foliot up`" in said


async def test_migrate_brings_a_database_up_to_date_and_does_nothing_the_second_time(
    terminal: Terminal, postgres: PostgresServer
) -> None:
    database = await postgres.empty()
    first, second = (
        terminal.foliot("migrate", database_url=postgres.url_of(database), log_format="json") for _ in range(2)
    )
    await postgres.drop(database)
    newest = known_migrations()[-1].version
    for ended in (first, second):
        assert (ended.code, ended.out) == (0, f"The schema is at version {newest}.\n")
    assert json.loads(first.err)["event"] == "SchemaMigrated"
    assert second.err == ""


def test_queues_are_given_with_or_without_slots() -> None:
    assert parse_queues(("mail=20", "default", "a.b:c-d=1"), 32) == {"mail": 20, "default": 32, "a.b:c-d": 1}


@pytest.mark.parametrize(
    "queue", ["", "=3", "a b", "mail=", "mail=0", "mail=-1", "mail=x", "mail=1.5", "mail=100001", "mail=" + "1" * 5000]
)
def test_an_invalid_queue_is_refused(queue: str) -> None:
    with pytest.raises(Invalid, match=r"^--queue "):
        parse_queues((queue,), 32)


def test_an_invalid_queue_exits_with_2(terminal: Terminal) -> None:
    assert "slots must be a number from 1 to 100000, as in mail=20" in terminal.refusal(
        "worker", "--queue", "mail=many"
    )


def test_without_queues_a_worker_serves_default_and_the_queues_of_its_tasks() -> None:
    app = App()
    app.task(name="a", queue="mail")(print)
    app.task(name="b", queue="mail")(print)
    assert queues_of(app, 7) == {"default": 7, "mail": 7}
