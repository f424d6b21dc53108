"""Every setting in one structure, the rules between settings, and warnings. `sections/` has the settings by topic."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from foliot.config.archive_rules import check_archive
from foliot.config.coordination_rules import check_coordination
from foliot.config.masking import POSTGRES_URLS, SECRETS, shown
from foliot.config.networks import host_and_port, networks_of
from foliot.config.otlp import check_otlp
from foliot.config.secret_rules import check_secrets
from foliot.config.sections.events import EventsSettings
from foliot.config.urls import BROKER_SCHEMES, broker_kind_of, is_local, is_postgres_url, scheme_of
from foliot.config.worker_range import worker_range

PREFIX = "FOLIOT_"
_NAMES_FOR_COMMANDS = (
    "RUN_ID", "ATTEMPT", "RESULT", "UPSTREAM", "SIGNAL", "GUARD", "SCHEDULED_FOR", "PREVIOUS_TICK", "NEXT_TICK",
    "TIMEZONE", "JOB",
    "IS_BACKFILL",
)  # fmt: skip
GIVEN_TO_COMMANDS = frozenset(f"FOLIOT_{name}" for name in _NAMES_FOR_COMMANDS)
"""Variables that Foliot sets in the environment of a job's command. A `foliot` that the command calls inherits them."""
"""Settings that may contain a password. Each has a counterpart with the suffix `_file`."""
BUILT_IN_TASKS = frozenset({
    "http", "map", "shell", "simulate", "wait", "wait_for_file", "wait_for_row", "wait_for_url", "workflow",
})  # fmt: skip
LISTS = ("disabled_tasks", "http_allow_hosts", "secret_references", "shell_environment", "wait_for_file_directories")
"""Comma-separated settings, which a TOML file may give as lists."""


class Config(EventsSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting. The settings themselves are in `sections/`."""

    def __post_init__(self) -> None:
        for name in POSTGRES_URLS:
            if (url := getattr(self, name)) and not is_postgres_url(url):
                # Do not quote it: it may contain a password.
                raise ValueError(
                    f"{name} must look like postgresql://user@host:5432/name; "
                    "in a password write %40 for @ and %2F for /"
                )
        if bool(self.tls_certificate_file) != bool(self.tls_key_file):
            raise ValueError("tls_certificate_file and tls_key_file belong together: set both or neither")
        networks_of(self.trusted_proxies)
        worker_range(self.workers)
        if self.statsd_address:
            host_and_port("statsd_address", self.statsd_address)
        self._check_dispatch()
        self._check_events()
        check_coordination(self)
        check_archive(self)
        check_otlp(self)
        check_secrets(self)
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

    def _check_dispatch(self) -> None:
        # Its URL is not quoted: it may contain a password.
        if self.dispatch == "postgres":
            if self.dispatch_url:
                raise ValueError("dispatch_url is given, but dispatch is postgres; set dispatch to the kind of broker")
            return
        schemes = BROKER_SCHEMES[self.dispatch]
        if scheme_of(self.dispatch_url) not in schemes:
            raise ValueError(
                f"dispatch_url must begin with {' or '.join(f'{one}://' for one in schemes)} for dispatch = "
                f"{self.dispatch}; in a password write %40 for @ and %2F for /"
            )

    def _check_events(self) -> None:
        if self.events_url and broker_kind_of(self.events_url) is None:
            schemes = [f"{one}://" for some in BROKER_SCHEMES.values() for one in some]
            raise ValueError(
                f"events_url must begin with {', '.join(schemes[:-1])} or {schemes[-1]}; "
                "in a password write %40 for @ and %2F for /"
            )
        if self.events_topic == self.events_dead_letter_topic:
            raise ValueError("events_topic and events_dead_letter_topic must differ")

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
        if self.coordination != "postgres" and self.coordination_session_seconds >= self.shard_ttl_seconds:
            found.append(
                "coordination_session_seconds is not below shard_ttl_seconds: "
                "the shards of a dead node are taken over no sooner than without coordination"
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
            shown(secret, getattr(self, secret)) != getattr(self, secret) for secret in SECRETS
        ):
            found.append(f"everybody on this machine can read {file}, which contains a password; run chmod o-rwx on it")
        return found


def _is_for_everybody(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o004)
    except OSError:
        return False


def did_you_mean(name: str, known: Iterable[str]) -> str:
    # `repr` of an enumeration's member is not its text.
    near = difflib.get_close_matches(name, [str(one) for one in known], n=1, cutoff=0.6)
    return f", did you mean {near[0]!r}?" if near else ""
