"""Every setting: its name, unit, default and one line of documentation.

A setting comes from, in rising order: its default, a TOML file (`foliot.toml` in the working directory, or
FOLIOT_CONFIG), the environment (FOLIOT_ + its name in capitals), the command line. Unknown names are refused with the
nearest known one.

A secret can be read from a file instead: `NAME_file` names it. See `secret_in`.
"""

from __future__ import annotations

import difflib
import functools
import ipaddress
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from msgspec import Meta

from foliot.errors import ConfigurationError

PREFIX = "FOLIOT_"
# Read by other parts than this one: the command line's client, and the path of the TOML file itself.
GIVEN_TO_COMMANDS = frozenset(
    f"FOLIOT_{name}" for name in ("RUN_ID", "ATTEMPT", "RESULT", "UPSTREAM", "SIGNAL", "GUARD")
)
"""What a job's command finds in its environment, and so does a `foliot` that it calls."""
OTHER_VARIABLES = (
    frozenset({"FOLIOT_CONFIG", "FOLIOT_URL", "FOLIOT_URL_FILE", "FOLIOT_TOKEN", "FOLIOT_TOKEN_FILE"})
    | GIVEN_TO_COMMANDS
)
SECRETS = ("database_url", "database_direct_url")
"""Settings that may hold a password. Each has a twin with `_file` at its end."""
SECRET_MAX_BYTES = 65_536
BUILT_IN_TASKS = frozenset({"http", "map", "shell", "simulate", "wait", "workflow"})
LISTS = ("disabled_tasks", "http_allow_hosts", "shell_environment")
"""Texts with commas, which a TOML file may give as lists."""
DESCRIPTOR = re.compile(r"fd:([0-9]{1,9})")

LOCAL_HOSTS = frozenset({"", "localhost", "127.0.0.1", "::1"})
HOST = re.compile(r"(?:\[[^\]]*\]|[^\[\]:]*)(?::[0-9]{0,5})?")

NamespaceName = Annotated[str, Meta(min_length=1, max_length=63, pattern=r"^[a-z0-9][a-z0-9_-]*$(?!\n)")]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def data_home() -> str:
    return str(Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "foliot")


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    # --- the database
    database_url: Annotated[str, Meta(description="URL of your PostgreSQL. Empty: the embedded one in `data`.")] = ""
    database_direct_url: Annotated[
        str, Meta(description="URL past a pooler such as PgBouncer, for wake-ups. Empty behind a pooler: polling only.")
    ] = ""
    database_url_file: Annotated[
        str,
        Meta(
            description="File that holds `database_url`, such as a mounted secret; or `fd:3` for a descriptor the process inherits."
        ),
    ] = ""
    database_direct_url_file: Annotated[str, Meta(description="The same for `database_direct_url`.")] = ""
    database_pool_size: Annotated[int, Meta(ge=2, le=500, description="Connections a process opens at the most.")] = 10
    database_connect_seconds: Annotated[Seconds, Meta(description="How long connecting may take.")] = 5
    database_statement_seconds: Annotated[Seconds, Meta(description="How long a statement may take.")] = 5
    database_lock_seconds: Annotated[Seconds, Meta(description="How long a statement may wait for a lock.")] = 2
    database_idle_in_transaction_seconds: Annotated[
        Seconds, Meta(description="How long a transaction may sit idle before PostgreSQL ends it.")
    ] = 10
    database_retry_seconds: Annotated[
        Seconds, Meta(description="How long a statement is tried again while PostgreSQL is away.")
    ] = 10
    data: Annotated[str, Meta(description="Directory of the embedded PostgreSQL.")] = msgspec.field(
        default_factory=data_home
    )
    pg_bin: Annotated[
        str, Meta(description="Directory of PostgreSQL binaries for the embedded server. Empty: found.")
    ] = ""

    # --- the API
    host: Annotated[str, Meta(description="Address the API listens on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description="Port the API listens on. 0: any free one.")] = 8000
    body_max_bytes: Annotated[int, Meta(ge=1024, description="Largest request body, counted as it arrives.")] = (
        1_048_576
    )
    batch_max_bytes: Annotated[int, Meta(ge=1024, description="Largest request body of `POST /v1/jobs/batch`.")] = (
        33_554_432
    )
    connections_max: Annotated[
        int,
        Meta(
            ge=8,
            le=1_000_000,
            description="Connections to the API that one process keeps open; fewer if it may not open so many files. Above it, a new one "
            "takes the place of the one whose client has been silent for longest; 503 if all are being answered.",
        ),
    ] = 2_000
    request_head_max_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1_048_576,
            description="Largest head of a request: its first line and its headers. Larger ones get 431.",
        ),
    ] = 32_768
    request_head_seconds: Annotated[
        Seconds, Meta(description="How long the head of a request may take to arrive; then 408.")
    ] = 10
    request_body_seconds: Annotated[
        Seconds,
        Meta(
            description="How long a body may take to arrive, plus a second for each 64 KiB that has arrived; then 408."
        ),
    ] = 30
    connection_idle_seconds: Annotated[
        Seconds, Meta(description="How long a connection may be idle between two requests.")
    ] = 30
    response_unread_seconds: Annotated[
        Seconds, Meta(description="How long a client may leave a response unread before its connection is ended.")
    ] = 60
    idempotency_hours: Annotated[
        float,
        Meta(gt=0, le=87_600, description="How long a repeated Idempotency-Key gets the answer that it got before."),
    ] = 24
    namespace: Annotated[
        NamespaceName,
        Meta(description="Namespace whose queues a worker serves, and to which the clients talk by default."),
    ] = "default"
    tls_certificate_file: Annotated[
        str, Meta(description="PEM file of the API's certificate and its chain. Empty: plain HTTP.")
    ] = ""
    tls_key_file: Annotated[str, Meta(description="PEM file of its private key.")] = ""
    plain_http_allowed: Annotated[
        bool,
        Meta(
            description="Whether the API may speak plain HTTP on a public address, because something in front of it does TLS."
        ),
    ] = False
    trusted_proxies: Annotated[
        str,
        Meta(
            description="Addresses and networks of reverse proxies whose X-Forwarded-For is believed, with commas between. Empty: none."
        ),
    ] = ""
    requests_per_second: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Requests of one token that one process answers in a second; more get 429. 0: all.",
        ),
    ] = 5_000
    audit_retention_days: Annotated[
        int, Meta(ge=1, le=36_500, description="Days that the record of who did what is kept.")
    ] = 90
    log_followers_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Logs that are followed at once through one process; more are refused with 429.",
        ),
    ] = 200
    event_followers_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Followers of runs' events at once through one process; more are refused with 429.",
        ),
    ] = 200
    followers_per_token_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Logs and events that one token follows at once; in local open mode, one address.",
        ),
    ] = 50
    followers_per_namespace_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Logs and events of one namespace that are followed at once through one process.",
        ),
    ] = 100

    # --- jobs
    retries: Annotated[int, Meta(ge=0, le=1000, description="Retries of a job that does not say.")] = 3
    timeout_seconds: Annotated[Seconds, Meta(description="Time limit of an attempt of a job that does not say.")] = 3600
    aging_seconds: Annotated[
        Seconds, Meta(description="Waiting that long is worth one level of priority. Very large: strict priority.")
    ] = 300
    lost_attempts_max: Annotated[
        int, Meta(ge=1, le=100, description="Lost workers a run survives; then it is failed.")
    ] = 3
    result_max_bytes: Annotated[int, Meta(ge=0, le=67_108_864, description="Largest result of a job, as JSON.")] = (
        262_144
    )
    output_max_bytes: Annotated[
        int, Meta(ge=0, le=67_108_864, description="Output kept of an attempt: half its head, half its tail.")
    ] = 65_536
    retention_days: Annotated[int, Meta(ge=1, le=36_500, description="Days that finished runs are kept.")] = 30

    # --- workers
    workers: Annotated[int, Meta(ge=0, le=256, description="Worker processes of `foliot up`.")] = 2
    slots: Annotated[
        int, Meta(ge=1, le=100_000, description="Attempts a worker runs at once in a queue that does not say.")
    ] = 32
    worker_ttl_seconds: Annotated[Seconds, Meta(description="Silence after which a worker counts as dead.")] = 15
    worker_beat_seconds: Annotated[Seconds, Meta(description="Time between two beats of a worker.")] = 5
    reaper_seconds: Annotated[Seconds, Meta(description="Time between two looks for dead workers.")] = 2
    shard_ttl_seconds: Annotated[
        Seconds, Meta(description="Silence after which a scheduler node's shards go to others.")
    ] = 9
    shard_renew_seconds: Annotated[
        Seconds, Meta(description="Time between two renewals of a scheduler node's shards.")
    ] = 3
    poll_seconds: Annotated[
        Seconds, Meta(description="Longest time between two looks for work that no hint announced.")
    ] = 1
    grace_seconds: Annotated[
        Seconds, Meta(description="Time that running attempts get to end when a worker stops.")
    ] = 30

    # --- what workers execute
    disabled_tasks: Annotated[
        str,
        Meta(
            description="Built-in tasks that this worker does not execute, with commas between: http, map, shell, simulate, wait, workflow."
        ),
    ] = ""
    containment: Annotated[
        Literal["auto", "bubblewrap", "cgroup", "launcher"],
        Meta(
            description="What holds the processes of a command together, so that all end with it. auto: the strongest there is."
        ),
    ] = "auto"
    shell_environment: Annotated[
        str,
        Meta(
            description="Names of the worker's variables that commands get beside PATH, HOME and the like, with commas between."
        ),
    ] = ""
    sandbox: Annotated[
        Literal["none", "process", "bubblewrap"],
        Meta(
            description="Sandbox of commands: none, limits of a process, or namespaces too. A command may ask for a stricter one only."
        ),
    ] = "none"
    sandbox_memory_mb: Annotated[
        int,
        Meta(
            ge=0,
            le=1_048_576,
            description="Memory of all processes of a command, and the most it may ask for. 0: no limit.",
        ),
    ] = 0
    sandbox_cpu_seconds: Annotated[int, Meta(ge=0, le=31_536_000, description="CPU time likewise.")] = 0
    sandbox_file_size_mb: Annotated[
        int, Meta(ge=0, le=1_048_576, description="Size of a file that it writes likewise.")
    ] = 0
    sandbox_processes: Annotated[
        int,
        Meta(ge=0, le=1_000_000, description="Number of its processes likewise; without cgroups, of its user."),
    ] = 0
    sandbox_network: Annotated[
        bool, Meta(description="Whether a command in a bubblewrap sandbox may ask for the network.")
    ] = True
    http_allow_private: Annotated[
        bool,
        Meta(
            description="Whether the task `http` may connect to private, loopback, link-local and metadata addresses."
        ),
    ] = False
    http_allow_hosts: Annotated[
        str, Meta(description="Hosts that it may connect to wherever they are, with commas between.")
    ] = ""
    http_ca_file: Annotated[
        str, Meta(description="PEM file of authorities that its HTTPS trusts beside the public ones.")
    ] = ""
    http_body_max_bytes: Annotated[
        int, Meta(ge=0, le=67_108_864, description="Largest part of a response's body that is kept.")
    ] = 65_536

    # --- logs
    log_format: Annotated[
        Literal["auto", "text", "json"], Meta(description="auto: text on a terminal, JSON elsewhere.")
    ] = "auto"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Least level that is logged.")
    ] = "info"

    def __post_init__(self) -> None:
        for name in ("database_url", "database_direct_url"):
            if (url := getattr(self, name)) and not _is_postgres_url(url):
                # Not quoted: it may hold a password.
                raise ValueError(
                    f"{name} must look like postgresql://user@host:5432/name; in a password write %40 for @ and %2F for /"
                )
        if bool(self.tls_certificate_file) != bool(self.tls_key_file):
            raise ValueError("tls_certificate_file and tls_key_file belong together: set both, or none")
        networks_of(self.trusted_proxies)
        for task in self.tasks_disabled():
            if task not in BUILT_IN_TASKS:
                known = ", ".join(sorted(BUILT_IN_TASKS))
                raise ValueError(
                    f"disabled_tasks: there is no built-in task {task!r}{did_you_mean(task, BUILT_IN_TASKS)}; they are {known}"
                )
        if self.worker_ttl_seconds < 3 * self.worker_beat_seconds:
            raise ValueError(
                f"worker_ttl_seconds ({self.worker_ttl_seconds:g}) must be at least three times "
                f"worker_beat_seconds ({self.worker_beat_seconds:g}), or one late beat kills a healthy worker"
            )
        if self.shard_ttl_seconds < 3 * self.shard_renew_seconds:
            raise ValueError(
                f"shard_ttl_seconds ({self.shard_ttl_seconds:g}) must be at least three times "
                f"shard_renew_seconds ({self.shard_renew_seconds:g}), or one late renewal moves every shard"
            )

    def tasks_disabled(self) -> frozenset[str]:
        return frozenset(name for part in self.disabled_tasks.split(",") if (name := part.strip()))

    def warnings(self) -> list[str]:
        """What is allowed but probably not meant."""
        found = []
        if self.database_statement_seconds >= self.worker_ttl_seconds:
            found.append(
                "database_statement_seconds is not below worker_ttl_seconds: one slow statement can cost a worker its lease"
            )
        if self.poll_seconds > 10:
            found.append("poll_seconds is above 10: a lost hint delays jobs by that much")
        if self.database_url and "sslmode" not in self.database_url and not _is_local(self.database_url):
            found.append(
                "database_url names another host without sslmode=verify-full: jobs and credentials may travel unencrypted"
            )
        paths = {name: getattr(self, name) for name in ("tls_key_file", "tls_certificate_file")}
        found.extend(
            f"{name}: {path} can't be read" for name, path in paths.items() if path and not os.access(path, os.R_OK)
        )
        private = {name: getattr(self, name) for name in ("tls_key_file", *(f"{secret}_file" for secret in SECRETS))}
        found.extend(
            f"{name}: everybody on this machine can read {path}; take that away with chmod o-rwx"
            for name, path in private.items()
            if path and _is_for_everybody(Path(path))
        )
        file = Path(os.environ.get("FOLIOT_CONFIG") or "foliot.toml")
        if _is_for_everybody(file) and any(
            without_password(url) != url for url in (self.database_url, self.database_direct_url)
        ):
            found.append(
                f"everybody on this machine can read {file}, and there is a password in it; take that away with chmod o-rwx"
            )
        return found


def _is_for_everybody(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o004)
    except OSError:
        return False


def load(overrides: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None) -> Config:
    """The configuration of this process. `overrides` are the command line's; None values there count as not given."""
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    for source in (_from_file(environment), _from_environment(environment), given):
        values = _over(values, source)
    for name in SECRETS:
        if where := values.get(f"{name}_file"):
            values[name] = secret_in(str(where), f"{name}_file")
    try:
        return msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        # msgspec says `... - at `$.port``; the setting's name is what the reader knows.
        raise ConfigurationError(f"configuration: {str(error).replace('`$.', '`')}") from None


def networks_of(setting: str) -> tuple[Network, ...]:
    """The networks that `trusted_proxies` names. Raises `ValueError`."""
    return tuple(_network(part.strip()) for part in setting.split(",")) if setting.strip() else ()


def _network(text: str) -> Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(
            f"trusted_proxies: {error}; write addresses and networks such as 10.0.0.5, 10.1.0.0/24 or 2001:db8::/64"
        ) from None
    if network.prefixlen == 0:
        raise ValueError(
            f"trusted_proxies: {text} is everybody, so that anybody could forge an address; name the proxies"
        )
    return network


def _over(values: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    """`source` wins. A secret and the file that holds it are two ways to say the same, so that one of them takes the
    place of the other."""
    merged = values | source
    for name in SECRETS:
        file = f"{name}_file"
        if source.get(name) and source.get(file):
            raise ConfigurationError(f"configuration: {name} and {file} are both given; give one of them")
        if source.get(name):
            merged.pop(file, None)
        elif source.get(file):
            merged.pop(name, None)
    return merged


def secret_in(where: str, name: str) -> str:
    """The text in a file, or in a descriptor that this process has inherited, without the line's end. `name` is the
    setting that names it.

    A descriptor is read to its end and closed, so that nothing this process starts finds it.
    """
    try:
        if descriptor := DESCRIPTOR.fullmatch(where):
            content = _read_descriptor(int(descriptor[1]))
        else:
            with Path(where).open("rb") as file:
                content = file.read(SECRET_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{name}: {where} can't be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    if len(content) > SECRET_MAX_BYTES:
        raise ConfigurationError(
            f"{name}: {where} has more than {SECRET_MAX_BYTES} bytes; it should hold one line and nothing else"
        )
    try:
        text = content.decode("utf-8").strip()
    except UnicodeDecodeError:
        # Not quoted: it may be a secret all the same.
        raise ConfigurationError(f"{name}: {where} is not UTF-8 text") from None
    if not text:
        raise ConfigurationError(f"{name}: {where} is empty")
    return text


@functools.cache
def _read_descriptor(descriptor: int) -> bytes:
    """Remembered, since it can be read only once and the clients ask again for each connection."""
    with open(descriptor, "rb") as file:
        if file.seekable():
            # A supervisor hands the same file to each process that it starts.
            file.seek(0)
        return file.read(SECRET_MAX_BYTES + 1)


def from_environment(variable: str) -> str:
    """A variable of the clients, or what the file holds that VARIABLE_FILE names; empty if there is neither."""
    value, where = os.environ.get(variable, ""), os.environ.get(f"{variable}_FILE", "")
    if value and where:
        raise ConfigurationError(f"environment: {variable} and {variable}_FILE are both given; give one of them")
    return secret_in(where, f"{variable}_FILE") if where else value


def forget_secrets() -> None:
    """Takes them out of this process's environment, once they are read: otherwise everything that a task starts
    inherits them."""
    for name in SECRETS:
        os.environ.pop(PREFIX + name.upper(), None)


def hidden_paths(config: Config) -> list[Path]:
    """Where secrets of this process may lie: the embedded PostgreSQL, the file that the settings came from, and files
    with a secret."""
    named = [config.tls_key_file, *(getattr(config, f"{name}_file") for name in SECRETS)]
    named += [os.environ.get(f"FOLIOT_{name}_FILE", "") for name in ("URL", "TOKEN")]
    files = [path for path in named if path and not DESCRIPTOR.fullmatch(path)]
    return [Path(path).absolute() for path in (config.data, os.environ.get("FOLIOT_CONFIG") or "foliot.toml", *files)]


def setting_names() -> tuple[str, ...]:
    return Config.__struct_fields__


def did_you_mean(name: str, known: Iterable[str]) -> str:
    # Members of an enumeration are text, too, but do not look like it.
    near = difflib.get_close_matches(name, [str(one) for one in known], n=1, cutoff=0.6)
    return f", did you mean {near[0]!r}?" if near else ""


def _from_file(environment: Mapping[str, str]) -> dict[str, Any]:
    named = environment.get("FOLIOT_CONFIG")
    path = Path(named or "foliot.toml")
    if not named and not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"configuration file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"configuration file {path}: {error}") from None
    for name in values:
        if name not in setting_names():
            raise ConfigurationError(
                f"configuration file {path}: unknown setting {name!r}{did_you_mean(name, setting_names())}"
            )
    for name in LISTS:
        if isinstance(given := values.get(name), list) and all(isinstance(word, str) for word in given):
            values[name] = ",".join(given)
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    known = {PREFIX + name.upper(): name for name in setting_names()}
    values = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable not in known:
            raise ConfigurationError(f"environment: unknown setting {variable!r}{did_you_mean(variable, known)}")
        values[known[variable]] = value
    return values


def _is_postgres_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("postgresql", "postgres") and all(
        HOST.fullmatch(host) for host in parts.netloc.rpartition("@")[2].split(",")
    )


def _is_local(url: str) -> bool:
    parts = urlsplit(url)
    named = unquote(parts.netloc.rpartition("@")[2]).split(",")
    hosts = parse_qs(parts.query).get("host") or [re.sub(r":\d*$", "", host).strip("[]") for host in named]
    return all(host in LOCAL_HOSTS or host.startswith("/") for host in hosts)


def without_password(url: str) -> str:
    """The URL as it may be shown. A password with raw @ or / in it is hidden to its end, too."""
    shown = re.sub(r"(password=)[^&]*", r"\1***", url)
    end = shown.rfind("@")
    begin = re.search(r"://[^:/@]*:", shown[:end]) if end > 0 else None
    return f"{shown[: begin.end()]}***{shown[end:]}" if begin else shown
