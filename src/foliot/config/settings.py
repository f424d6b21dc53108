"""Every setting: its name, unit, default and one line of documentation."""

from __future__ import annotations

import difflib
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from foliot.config.urls import is_local, is_postgres_url, without_password

PREFIX = "FOLIOT_"
GIVEN_TO_COMMANDS = frozenset(
    f"FOLIOT_{name}" for name in ("RUN_ID", "ATTEMPT", "RESULT", "UPSTREAM", "SIGNAL", "GUARD")
)
"""Variables that Foliot sets in the environment of a job's command. A `foliot` that the command calls inherits them."""
SECRETS = ("database_url", "database_direct_url")
"""Settings that may contain a password. Each has a counterpart with the suffix `_file`."""
BUILT_IN_TASKS = frozenset({"http", "map", "shell", "simulate", "wait", "workflow"})
LISTS = ("disabled_tasks", "http_allow_hosts", "shell_environment")
"""Comma-separated settings, which a TOML file may give as lists."""

NamespaceName = Annotated[str, Meta(min_length=1, max_length=63, pattern=r"^[a-z0-9][a-z0-9_-]*$(?!\n)")]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def data_home() -> str:
    return str(Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "foliot")


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    # --- the database
    database_url: Annotated[str, Meta(description="URL of your PostgreSQL. Empty: the embedded server in `data`.")] = ""
    database_direct_url: Annotated[
        str,
        Meta(
            description="URL that bypasses a pooler such as PgBouncer, for wake-ups. "
            "Empty behind a pooler: polling only."
        ),
    ] = ""
    database_url_file: Annotated[
        str,
        Meta(
            description="File that contains `database_url`, such as a mounted secret, or `fd:3` for an inherited "
            "file descriptor."
        ),
    ] = ""
    database_direct_url_file: Annotated[str, Meta(description="The same for `database_direct_url`.")] = ""
    database_pool_size: Annotated[int, Meta(ge=2, le=500, description="Most connections that a process opens.")] = 10
    database_connect_seconds: Annotated[Seconds, Meta(description="Timeout of connecting.")] = 5
    database_statement_seconds: Annotated[Seconds, Meta(description="Timeout of a statement.")] = 5
    database_lock_seconds: Annotated[Seconds, Meta(description="How long a statement may wait for a lock.")] = 2
    database_idle_in_transaction_seconds: Annotated[
        Seconds, Meta(description="How long a transaction may sit idle before PostgreSQL ends it.")
    ] = 10
    database_retry_seconds: Annotated[
        Seconds, Meta(description="How long a statement is retried while PostgreSQL is unavailable.")
    ] = 10
    data: Annotated[str, Meta(description="Directory of the embedded PostgreSQL.")] = msgspec.field(
        default_factory=data_home
    )
    pg_bin: Annotated[
        str, Meta(description="Directory of PostgreSQL binaries for the embedded server. Empty: Foliot finds them.")
    ] = ""

    # --- the API
    host: Annotated[str, Meta(description="Address the API listens on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description="Port the API listens on. 0: any free port.")] = 8000
    body_max_bytes: Annotated[int, Meta(ge=1024, description="Largest request body.")] = 1_048_576
    batch_max_bytes: Annotated[int, Meta(ge=1024, description="Largest request body of `POST /v1/jobs/batch`.")] = (
        33_554_432
    )
    connections_max: Annotated[
        int,
        Meta(
            ge=8,
            le=1_000_000,
            description="Most connections that one API process keeps open; fewer if its limit of open files is lower. "
            "Above it, a new connection replaces the one that has been idle longest, or gets 503 if all are busy.",
        ),
    ] = 2_000
    request_head_max_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1_048_576,
            description="Largest request head (request line and headers). A larger one gets 431.",
        ),
    ] = 32_768
    request_head_seconds: Annotated[
        Seconds, Meta(description="How long a request head may take to arrive before the client gets 408.")
    ] = 10
    request_body_seconds: Annotated[
        Seconds,
        Meta(
            description="How long a body may take to arrive, plus a second for each 64 KiB received, before "
            "the client gets 408."
        ),
    ] = 30
    connection_idle_seconds: Annotated[
        Seconds, Meta(description="How long a connection may stay idle between requests.")
    ] = 30
    response_unread_seconds: Annotated[
        Seconds, Meta(description="How long a client may leave a response unread before its connection is closed.")
    ] = 60
    idempotency_hours: Annotated[
        float,
        Meta(gt=0, le=87_600, description="How long a repeated Idempotency-Key gets the first answer."),
    ] = 24
    namespace: Annotated[
        NamespaceName,
        Meta(description="Namespace whose queues a worker serves, and default namespace of clients."),
    ] = "default"
    tls_certificate_file: Annotated[
        str, Meta(description="PEM file of the API's certificate chain. Empty: plain HTTP.")
    ] = ""
    tls_key_file: Annotated[str, Meta(description="PEM file of the certificate's private key.")] = ""
    plain_http_allowed: Annotated[
        bool,
        Meta(description="Whether the API may serve plain HTTP on a public address, because a proxy does TLS."),
    ] = False
    trusted_proxies: Annotated[
        str,
        Meta(
            description="Addresses and networks of reverse proxies whose X-Forwarded-For is trusted, "
            "separated by commas. Empty: none."
        ),
    ] = ""
    requests_per_second: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Requests per second of one token that one process answers; more get 429. 0: no limit.",
        ),
    ] = 5_000
    audit_retention_days: Annotated[int, Meta(ge=1, le=36_500, description="Days to keep audit records.")] = 90
    log_followers_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Log streams that one process serves at once; more get 429.",
        ),
    ] = 200
    event_followers_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Event streams that one process serves at once; more get 429.",
        ),
    ] = 200
    followers_per_token_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Log and event streams of one token at once; in local open mode, of one address.",
        ),
    ] = 50
    followers_per_namespace_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Log and event streams of one namespace that one process serves at once.",
        ),
    ] = 100

    # --- jobs
    retries: Annotated[int, Meta(ge=0, le=1000, description="Default number of retries of a job.")] = 3
    timeout_seconds: Annotated[Seconds, Meta(description="Default timeout of an attempt.")] = 3600
    aging_seconds: Annotated[
        Seconds,
        Meta(description="A waiting run gains one level of priority in this time. Very large: strict priority."),
    ] = 300
    lost_attempts_max: Annotated[
        int, Meta(ge=1, le=100, description="Workers that a run may lose before it fails.")
    ] = 3
    result_max_bytes: Annotated[int, Meta(ge=0, le=67_108_864, description="Largest result of a job, as JSON.")] = (
        262_144
    )
    output_max_bytes: Annotated[
        int, Meta(ge=0, le=67_108_864, description="Output kept of an attempt: half from its start, half from its end.")
    ] = 65_536
    retention_days: Annotated[int, Meta(ge=1, le=36_500, description="Days to keep finished runs.")] = 30

    # --- workers
    workers: Annotated[int, Meta(ge=0, le=256, description="Worker processes of `foliot up`.")] = 2
    slots: Annotated[
        int, Meta(ge=1, le=100_000, description="Default number of attempts that a worker runs at once in a queue.")
    ] = 32
    worker_ttl_seconds: Annotated[
        Seconds, Meta(description="Time without a heartbeat after which a worker counts as dead.")
    ] = 15
    worker_beat_seconds: Annotated[Seconds, Meta(description="Time between two heartbeats of a worker.")] = 5
    reaper_seconds: Annotated[Seconds, Meta(description="Time between two checks for dead workers.")] = 2
    shard_ttl_seconds: Annotated[
        Seconds, Meta(description="Time without a renewal after which other nodes take over a scheduler node's shards.")
    ] = 9
    shard_renew_seconds: Annotated[
        Seconds, Meta(description="Time between two renewals of a scheduler node's shards.")
    ] = 3
    poll_seconds: Annotated[
        Seconds, Meta(description="Longest time between two polls for work that no hint announced.")
    ] = 1
    grace_seconds: Annotated[
        Seconds, Meta(description="Time that running attempts get to end when a worker shuts down.")
    ] = 30

    # --- what workers execute
    disabled_tasks: Annotated[
        str,
        Meta(
            description="Built-in tasks that this worker does not execute, separated by commas: "
            "http, map, shell, simulate, wait, workflow."
        ),
    ] = ""
    containment: Annotated[
        Literal["auto", "bubblewrap", "cgroup", "launcher"],
        Meta(
            description="How the processes of a command are contained, so that all end with it. auto: the strongest "
            "available."
        ),
    ] = "auto"
    shell_environment: Annotated[
        str,
        Meta(
            description="Names of the worker's environment variables that commands inherit besides PATH, HOME "
            "and the like, separated by commas."
        ),
    ] = ""
    sandbox: Annotated[
        Literal["none", "process", "bubblewrap"],
        Meta(
            description="Sandbox of commands: none, process (resource limits) or bubblewrap (namespaces too). "
            "A command may only choose a stricter one."
        ),
    ] = "none"
    sandbox_memory_mb: Annotated[
        int,
        Meta(
            ge=0,
            le=1_048_576,
            description="Memory limit of all processes of a command, and the most it may request. 0: no limit.",
        ),
    ] = 0
    sandbox_cpu_seconds: Annotated[
        int, Meta(ge=0, le=31_536_000, description="CPU time limit of a command, likewise.")
    ] = 0
    sandbox_file_size_mb: Annotated[
        int, Meta(ge=0, le=1_048_576, description="Size limit of a file that a command writes, likewise.")
    ] = 0
    sandbox_processes: Annotated[
        int,
        Meta(
            ge=0, le=1_000_000, description="Limit of a command's processes, likewise; without cgroups, of its user's."
        ),
    ] = 0
    sandbox_network: Annotated[
        bool, Meta(description="Whether a command in a bubblewrap sandbox may use the network.")
    ] = True
    http_allow_private: Annotated[
        bool,
        Meta(
            description="Whether the task `http` may connect to private, loopback, link-local and metadata addresses."
        ),
    ] = False
    http_allow_hosts: Annotated[
        str, Meta(description="Hosts that the task `http` may connect to at any address, separated by commas.")
    ] = ""
    http_ca_file: Annotated[
        str,
        Meta(description="PEM file of certificate authorities that the task `http` trusts besides the public ones."),
    ] = ""
    http_body_max_bytes: Annotated[
        int, Meta(ge=0, le=67_108_864, description="Most bytes kept of a response body.")
    ] = 65_536

    # --- logs
    log_format: Annotated[
        Literal["auto", "text", "json"], Meta(description="auto: text on a terminal, JSON elsewhere.")
    ] = "auto"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Lowest level that is logged.")
    ] = "info"

    def __post_init__(self) -> None:
        for name in ("database_url", "database_direct_url"):
            if (url := getattr(self, name)) and not is_postgres_url(url):
                # Do not quote it: it may contain a password.
                raise ValueError(
                    f"{name} must look like postgresql://user@host:5432/name; "
                    "in a password write %40 for @ and %2F for /"
                )
        if bool(self.tls_certificate_file) != bool(self.tls_key_file):
            raise ValueError("tls_certificate_file and tls_key_file belong together: set both or neither")
        networks_of(self.trusted_proxies)
        for task in self.tasks_disabled():
            if task not in BUILT_IN_TASKS:
                known = ", ".join(sorted(BUILT_IN_TASKS))
                raise ValueError(
                    f"disabled_tasks: {task!r} is not a built-in task{did_you_mean(task, BUILT_IN_TASKS)}; "
                    f"the built-in tasks are {known}"
                )
        if self.worker_ttl_seconds < 3 * self.worker_beat_seconds:
            raise ValueError(
                f"worker_ttl_seconds ({self.worker_ttl_seconds:g}) must be at least three times "
                f"worker_beat_seconds ({self.worker_beat_seconds:g}), or one late heartbeat expires a healthy worker"
            )
        if self.shard_ttl_seconds < 3 * self.shard_renew_seconds:
            raise ValueError(
                f"shard_ttl_seconds ({self.shard_ttl_seconds:g}) must be at least three times "
                f"shard_renew_seconds ({self.shard_renew_seconds:g}), or one late renewal moves every shard"
            )

    def tasks_disabled(self) -> frozenset[str]:
        return frozenset(name for part in self.disabled_tasks.split(",") if (name := part.strip()))

    def warnings(self) -> list[str]:
        """Warnings about settings that are valid but probably not intended."""
        found = []
        if self.database_statement_seconds >= self.worker_ttl_seconds:
            found.append(
                "database_statement_seconds is not below worker_ttl_seconds: "
                "one slow statement can cost a worker its lease"
            )
        if self.poll_seconds > 10:
            found.append("poll_seconds is above 10: a lost hint delays jobs by that much")
        if self.database_url and "sslmode" not in self.database_url and not is_local(self.database_url):
            found.append(
                "database_url names another host without sslmode=verify-full: "
                "jobs and credentials may travel unencrypted"
            )
        paths = {name: getattr(self, name) for name in ("tls_key_file", "tls_certificate_file")}
        found.extend(
            f"{name}: {path} can't be read" for name, path in paths.items() if path and not os.access(path, os.R_OK)
        )
        private = {name: getattr(self, name) for name in ("tls_key_file", *(f"{secret}_file" for secret in SECRETS))}
        found.extend(
            f"{name}: everybody on this machine can read {path}; run chmod o-rwx on it"
            for name, path in private.items()
            if path and _is_for_everybody(Path(path))
        )
        file = Path(os.environ.get("FOLIOT_CONFIG") or "foliot.toml")
        if _is_for_everybody(file) and any(
            without_password(url) != url for url in (self.database_url, self.database_direct_url)
        ):
            found.append(f"everybody on this machine can read {file}, which contains a password; run chmod o-rwx on it")
        return found


def _is_for_everybody(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o004)
    except OSError:
        return False


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
        raise ValueError(f"trusted_proxies: {text} matches every address, so anybody could forge one; name the proxies")
    return network


def did_you_mean(name: str, known: Iterable[str]) -> str:
    # `repr` of an enumeration's member is not its text.
    near = difflib.get_close_matches(name, [str(one) for one in known], n=1, cutoff=0.6)
    return f", did you mean {near[0]!r}?" if near else ""
