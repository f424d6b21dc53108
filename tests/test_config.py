"""Settings: their sources, which source wins, and the errors for wrong values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_type_hints

import pytest

from foliot.config import (
    Config,
    from_environment,
    hidden_paths,
    load,
    setting_names,
)
from foliot.config.secrets import _read_descriptor
from foliot.errors import ConfigurationError


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without a foliot.toml."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(*, environment: dict[str, str] | None = None, overrides: dict[str, object] | None = None) -> str:
    with pytest.raises(ConfigurationError) as refused:
        load(overrides, environment or {})
    return refused.value.detail


def test_every_setting_has_a_default() -> None:
    config = load(environment={})
    assert config == Config()
    assert config.warnings() == []


def test_the_command_line_overrides_environment_file_and_default(
    directory: Path,
) -> None:
    assert load(environment={}).port == 8000
    (directory / "foliot.toml").write_text("port = 8001\nretries = 7\n")
    assert load(environment={}).port == 8001
    assert load(environment={"FOLIOT_PORT": "8002"}).port == 8002
    winner = load({"port": 8003}, {"FOLIOT_PORT": "8002"})
    assert (winner.port, winner.retries) == (8003, 7)


def test_a_missing_option_overrides_nothing() -> None:
    assert load({"port": None}, {"FOLIOT_PORT": "8002"}).port == 8002


def test_the_file_can_be_anywhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.toml"
    elsewhere.write_text('log_level = "debug"')
    assert load(environment={"FOLIOT_CONFIG": str(elsewhere)}).log_level == "debug"


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [(None, "No such file or directory"), (b"port = ", "Invalid value"), (b"host = '\xff'", "can't decode byte 0xff")],
)
def test_a_configured_file_must_exist_and_be_toml(tmp_path: Path, contents: bytes | None, complaint: str) -> None:
    path = tmp_path / "named.toml"
    if contents is not None:
        path.write_bytes(contents)
    said = refusal(environment={"FOLIOT_CONFIG": str(path)})
    assert str(path) in said
    assert complaint in said


def test_an_unknown_setting_in_the_file_gets_a_suggestion(directory: Path) -> None:
    (directory / "foliot.toml").write_text("retrys = 3")
    assert "unknown setting 'retrys', did you mean 'retries'?" in refusal()


def test_an_unknown_variable_gets_a_suggestion() -> None:
    said = refusal(environment={"FOLIOT_DATABASE_ULR": "postgresql://localhost/x"})
    assert "unknown setting 'FOLIOT_DATABASE_ULR', did you mean 'FOLIOT_DATABASE_URL'?" in said


def test_an_unknown_name_without_similar_ones_gets_no_suggestion(directory: Path) -> None:
    (directory / "foliot.toml").write_text("xyzzy = 3")
    assert refusal().endswith("unknown setting 'xyzzy'")


def test_variables_of_other_programs_and_of_the_client_are_ignored() -> None:
    assert (
        load(environment={"PORT": "x", "FOLIOTX": "x", "FOLIOT_URL": "http://localhost", "FOLIOT_TOKEN": "t"})
        == Config()
    )


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("port", "eight"),
        ("port", ""),
        ("port", "65536"),
        ("port", "-1"),
        ("slots", "0"),
        ("slots", "1.5"),
        ("retries", "1001"),
        ("poll_seconds", "0"),
        ("poll_seconds", "nan"),
        ("poll_seconds", "inf"),
        ("log_level", "loud"),
        ("log_format", "xml"),
    ],
)
def test_an_invalid_value_is_refused_with_the_name_of_its_setting(setting: str, value: str) -> None:
    assert f"configuration: {setting}: " in refusal(environment={f"FOLIOT_{setting.upper()}": value})


@pytest.mark.parametrize("contents", ["port = [1]", "port = true", "host = 1"])
def test_an_invalid_value_in_the_file_is_refused_with_the_name_of_its_setting(directory: Path, contents: str) -> None:
    (directory / "foliot.toml").write_text(contents)
    assert f"configuration: {contents.split()[0]}: " in refusal()


def test_a_lease_must_last_for_three_heartbeats() -> None:
    assert "worker_ttl_seconds (14.9) must be at least three times worker_beat_seconds (5)" in refusal(
        environment={"FOLIOT_WORKER_TTL_SECONDS": "14.9"}
    )
    assert load({"worker_ttl_seconds": 15, "worker_beat_seconds": 5}, {}).worker_ttl_seconds == 15


@pytest.mark.parametrize("setting", ["database_url", "database_direct_url"])
@pytest.mark.parametrize(
    "url",
    [
        "secret",
        "http://host/db",
        "host=h password=secret",
        "postgresql://[secret",
        "postgresql://user:secret/@host/db",
        "postgresql://h:x/db",
    ],
)
def test_an_invalid_database_url_is_refused_and_not_shown(setting: str, url: str) -> None:
    said = refusal(overrides={setting: url})
    assert f"{setting} must look like postgresql://user@host:5432/name" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    "url",
    [
        "postgres://host",
        "postgresql://user:p%40ss@host:5432/db?sslmode=require",
        "postgresql://user:se@cret@[::1]:5432/db",
        "postgresql://one:5432,two:5433/db?target_session_attrs=read-write",
        "postgresql://user@/db?host=/run/postgresql&port=5433",
        "postgresql://user@%2Frun%2Fpostgresql/db",
    ],
)
def test_every_form_of_database_url_is_accepted(url: str) -> None:
    assert load({"database_url": url}, {}).database_url == url


@pytest.mark.parametrize(
    ("settings", "warned_of"),
    [
        ({"database_statement_seconds": 15}, "database_statement_seconds"),
        ({"poll_seconds": 10.5}, "poll_seconds"),
        ({"database_url": "postgresql://db.example.com/foliot"}, "sslmode"),
        ({"database_url": "postgresql://user@localhost.example.com/foliot"}, "sslmode"),
        ({"database_url": "postgresql:///foliot?host=db.example.com"}, "sslmode"),
    ],
)
def test_probable_mistakes_cause_a_warning(settings: dict[str, object], warned_of: str) -> None:
    (warning,) = load(settings, {}).warnings()
    assert warned_of in warning


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:secret@localhost/foliot",
        "postgresql://127.0.0.1:5433/foliot",
        "postgresql://user@[::1]:5432/foliot",
        "postgresql:///foliot",
        "postgresql:///foliot?host=/run/postgresql&user=me",
        "postgresql://db.example.com/foliot?sslmode=verify-full",
    ],
)
def test_a_local_or_encrypted_database_causes_no_warning(url: str) -> None:
    assert load({"database_url": url}, {}).warnings() == []


def test_world_readable_files_cause_a_warning(directory: Path) -> None:
    secret = directory / "foliot.toml"
    secret.write_text('database_url = "postgresql://user:secret@localhost/foliot"')
    secret.chmod(0o644)
    (warning,) = load(environment={}).warnings()
    assert "everybody on this machine can read foliot.toml" in warning
    assert "secret" not in warning.replace("secret file", "")
    secret.chmod(0o600)
    assert load(environment={}).warnings() == []
    secret.unlink()
    key = directory / "key.pem"
    key.write_text("")
    key.chmod(0o644)
    settings = {"tls_key_file": str(key), "tls_certificate_file": str(directory / "nothing.pem")}
    found = load(settings, {}).warnings()
    assert ["nothing.pem can't be read" in found[0], "chmod o-rwx" in found[1]] == [True, True]


def test_a_certificate_and_its_key_belong_together() -> None:
    assert "belong together" in refusal(overrides={"tls_key_file": "key.pem"})


@pytest.mark.parametrize("name", ["", "A", "a/b", "a b", "-a", "a" * 64, "a\n"])
def test_an_invalid_namespace_is_refused(name: str) -> None:
    assert "namespace" in refusal(overrides={"namespace": name})


def test_every_setting_is_documented() -> None:
    annotated = get_type_hints(Config, include_extras=True)
    undocumented = [name for name in setting_names() if "description=" not in str(annotated[name])]
    assert undocumented == []


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"FOLIOT_DISPATCH": "redis"}, "dispatch_url must begin with redis:// or rediss:// or unix://"),
        (
            {"FOLIOT_DISPATCH": "redis", "FOLIOT_DISPATCH_URL": "http://:hunter2@host"},
            "dispatch_url must begin with redis://",
        ),
        (
            {"FOLIOT_DISPATCH": "redis", "FOLIOT_DISPATCH_URL": "redis://:hunter2/x@host"},
            "in a password write %40 for @ and %2F for /",
        ),
        ({"FOLIOT_DISPATCH_URL": "redis://:hunter2@host"}, "dispatch is postgres; set dispatch to the kind of broker"),
        ({"FOLIOT_DISPATCH": "rabitmq"}, "dispatch"),
    ],
)
def test_a_broker_that_can_not_be_is_refused_without_its_password(settings: dict[str, str], reason: str) -> None:
    found = refusal(environment=settings)
    assert reason in found
    assert "hunter2" not in found


URL = "postgresql://foliot:hunter2@db/foliot"


def test_a_secret_can_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"  {URL}\n\n")
    for name in ("database_url", "database_direct_url"):
        config = load(environment={f"FOLIOT_{name.upper()}_FILE": str(file)})
        assert (getattr(config, name), getattr(config, f"{name}_file")) == (URL, str(file))
    assert file.absolute() in hidden_paths(config)


def test_a_secret_or_its_file_overrides_either_in_a_lower_source(directory: Path, tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(URL)
    (directory / "foliot.toml").write_text('database_url = "postgresql://other/foliot"')
    assert load(environment={"FOLIOT_DATABASE_URL_FILE": str(file)}).database_url == URL
    (directory / "foliot.toml").write_text('database_url_file = "/nowhere"')
    assert load(environment={"FOLIOT_DATABASE_URL": URL}).database_url == URL


def test_a_secret_and_its_file_in_the_same_source_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(URL)
    said = refusal(environment={"FOLIOT_DATABASE_URL": URL, "FOLIOT_DATABASE_URL_FILE": str(file)})
    assert said == "configuration: database_url and database_url_file are both given; give one of them"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "can't be read: No such file or directory"),
        (b" \n", "is empty"),
        (b"hunter2\xff", "is not UTF-8 text"),
        (b"x" * 70_000, "has more than 65536 bytes"),
        (b"hunter2", "must look like postgresql://"),
    ],
)
def test_an_empty_secret_file_is_refused_without_quoting_it(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    file = tmp_path / "url"
    if content is not None:
        file.write_bytes(content)
    said = refusal(environment={"FOLIOT_DATABASE_URL_FILE": str(file)})
    assert complaint in said
    assert "hunter2" not in said


def test_a_secret_can_come_from_a_descriptor_which_is_then_closed(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, URL.encode())
    os.close(writing)
    _read_descriptor.cache_clear()
    assert load(environment={"FOLIOT_DATABASE_URL_FILE": f"fd:{reading}"}).database_url == URL
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(reading)
    # The descriptor was read, and its secret is remembered.
    assert load(environment={"FOLIOT_DATABASE_URL_FILE": f"fd:{reading}"}).database_url == URL
    assert all(
        "fd:" not in str(path) for path in hidden_paths(load(environment={"FOLIOT_DATABASE_URL_FILE": f"fd:{reading}"}))
    )
    _read_descriptor.cache_clear()


def test_a_descriptor_that_is_not_open_is_refused() -> None:
    assert "database_url_file: fd:987 can't be read: Bad file descriptor" in refusal(
        environment={"FOLIOT_DATABASE_URL_FILE": "fd:987"}
    )


def test_a_world_readable_secret_causes_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://localhost/foliot")
    file.chmod(0o604)
    (warning,) = load(environment={"FOLIOT_DATABASE_URL_FILE": str(file)}).warnings()
    assert warning.startswith("database_url_file: everybody on this machine can read")


def test_the_clients_find_their_token_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text("foliot_1\n")
    monkeypatch.delenv("FOLIOT_TOKEN", raising=False)
    monkeypatch.setenv("FOLIOT_TOKEN_FILE", str(file))
    assert from_environment("FOLIOT_TOKEN") == "foliot_1"
    file.write_text("foliot_2\n")
    assert from_environment("FOLIOT_TOKEN") == "foliot_2"
    monkeypatch.setenv("FOLIOT_TOKEN", "foliot_3")
    with pytest.raises(ConfigurationError, match="FOLIOT_TOKEN and FOLIOT_TOKEN_FILE are both given"):
        from_environment("FOLIOT_TOKEN")
    monkeypatch.delenv("FOLIOT_TOKEN_FILE")
    assert from_environment("FOLIOT_TOKEN") == "foliot_3"
