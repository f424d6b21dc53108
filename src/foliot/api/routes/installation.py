"""`/v1/schedulers`, `/v1/health/database` and `/v1/settings`: the state of the whole installation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter
from msgspec import inspect
from starlette.responses import Response

from foliot import __version__
from foliot.api.openapi.operations import described
from foliot.api.requests.idempotency import answered
from foliot.api.security.permissions import PermissionRoute, requires
from foliot.api.streams.limits import EVENTS, LOGS, StreamLimits
from foliot.clock import Clock
from foliot.config import SECRETS, Config, shown
from foliot.model import database_advice as advice
from foliot.model.roles import Permission
from foliot.store.database_health import Facts, Replica, Slot, Statement, Table, advice_on
from foliot.store.store import Store


class SchedulerShown(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    is_alive: bool
    shards: int
    """The hundredths of the recurring jobs that it fires."""
    started_at: datetime
    last_beat_at: datetime | None


class ProcessShown(msgspec.Struct, frozen=True):
    part: str
    """server, scheduler, worker or up"""
    name: str
    """Host and process id."""
    is_current: bool
    """Whether it knows the newest migration of the schema."""
    started_at: datetime


class Streams(msgspec.Struct, frozen=True):
    """Of the server that answers."""

    events: int
    events_max: int
    logs: int
    logs_max: int


class Installation(msgspec.Struct, frozen=True):
    version: str
    schema_version: int
    now: datetime
    """The clock of the database."""
    clock_difference_seconds: float
    """The clock of the server that answers minus that of the database."""
    shards: int
    owned_shards: int
    """Jobs of a shard that no node owns do not fire."""
    items: list[SchedulerShown]
    processes: list[ProcessShown]
    """All running servers, scheduler nodes and workers."""
    streams: Streams


class DatabaseReport(msgspec.Struct, frozen=True):
    facts: Facts
    clock_difference_seconds: float
    tables: list[Table]
    """The largest first."""
    replicas: list[Replica]
    slots: list[Slot]
    statements: list[Statement] | None
    """The ten that have taken the most time. Null without the extension pg_stat_statements."""
    retention_days: int
    audit_retention_days: int
    advice: list[advice.Advice]


class Setting(msgspec.Struct, frozen=True):
    name: str
    value: Any
    default: Any
    source: Literal["default", "file", "environment", "command line"]
    description: str
    is_secret: bool
    """A password in the value is masked."""


class SettingList(msgspec.Struct, frozen=True):
    items: list[Setting]


class InstallationRoutes:
    def __init__(
        self, *, store: Store, config: Config, clock: Clock, streams: StreamLimits, sources: Mapping[str, str]
    ) -> None:
        self._store = store
        self._config = config
        self._clock = clock
        self._streams = streams
        self._sources = sources
        self.router = APIRouter(tags=["health"], route_class=PermissionRoute)
        add = self.router.add_api_route
        add("/v1/schedulers", self.list_schedulers, methods=["GET"], openapi_extra=described(200, Installation))
        add("/v1/health/database", self.get_database, methods=["GET"], openapi_extra=described(200, DatabaseReport))
        add("/v1/settings", self.list_settings, methods=["GET"], openapi_extra=described(200, SettingList))

    @requires(Permission.VIEW, everywhere=True)
    async def list_schedulers(self) -> Response:
        """Lists the scheduler nodes with their shards, and all running processes. They serve all namespaces, so this
        needs a token for all."""
        nodes, processes, (shards, owned, now) = await asyncio.gather(
            self._store.shards.list_schedulers(),
            self._store.database_health.list_processes(),
            self._store.shards.count_shards(),
        )
        return answered(
            Installation(
                version=__version__,
                schema_version=max((one.newest for one in processes), default=0),
                now=now,
                clock_difference_seconds=self._ahead_of(now),
                shards=shards,
                owned_shards=owned,
                items=[
                    SchedulerShown(one.id, one.name, one.is_alive, one.shards, one.started_at, one.beat_at)
                    for one in nodes
                ],
                processes=[
                    ProcessShown(one.part, one.name, one.knows >= one.newest, one.started_at) for one in processes
                ],
                streams=Streams(
                    self._streams.count(EVENTS),
                    self._config.event_followers_max,
                    self._streams.count(LOGS),
                    self._config.log_followers_max,
                ),
            )
        )

    @requires(Permission.OPERATE, everywhere=True, reading=True)
    async def get_database(self) -> Response:
        """Shows the health of the database: the size and growth of each table, dead rows, the oldest transaction,
        connections, replication and slow statements, with advice. Reads the catalog only, never the tables."""
        health = self._store.database_health
        facts = await health.read_facts()
        ahead = self._ahead_of(facts.now)
        tables, (replicas, slots) = await asyncio.gather(health.list_tables(), health.list_replication())
        statements = await health.slow_statements() if facts.has_statements else None
        archive = await self._archive_advice()
        return answered(
            DatabaseReport(
                facts=facts,
                clock_difference_seconds=ahead,
                tables=tables,
                replicas=replicas,
                slots=slots,
                statements=statements,
                retention_days=self._config.retention_days,
                audit_retention_days=self._config.audit_retention_days,
                advice=[*advice_on(facts, tables, replicas, slots, ahead), *archive],
            )
        )

    async def _archive_advice(self) -> list[advice.Advice]:
        archives = await self._store.archives.list_archives()
        if not archives:
            return []
        waiting = await self._store.partitions.list_unarchived()
        errors = {one.error or "no reason is known" for one in archives if one.failing_since is not None}
        return advice.of_archive(sorted(errors), len(waiting))

    @requires(Permission.ADMINISTER, everywhere=True, reading=True)
    async def list_settings(self) -> Response:
        """Lists the settings of the server that answers: their values, defaults and where the values come from.
        Passwords are masked."""
        return answered(SettingList([self._setting(field) for field in msgspec.structs.fields(Config)]))

    def _setting(self, field: msgspec.structs.FieldInfo) -> Setting:
        value = getattr(self._config, field.name)
        if str(value).startswith("fd:"):
            value = ""  # The way a supervisor passes a secret on is nobody's setting.
        default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
        is_secret = field.name in SECRETS
        source: Any = self._sources.get(field.name) or self._sources.get(f"{field.name}_file", "default")
        return Setting(
            name=field.name,
            value=shown(field.name, value),
            default=default,
            source=source,
            description=description_of(field.type),
            is_secret=is_secret,
        )

    def _ahead_of(self, now: datetime) -> float:
        return round((self._clock.now() - now).total_seconds(), 3)


def description_of(kind: Any) -> str:
    told = inspect.type_info(kind)
    extra = told.extra_json_schema if isinstance(told, inspect.Metadata) else None
    return str((extra or {}).get("description", ""))
