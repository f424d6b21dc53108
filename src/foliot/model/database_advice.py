"""Advice about a database, from what it says about itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

OLD_TRANSACTION_SECONDS = 300.0
CONNECTIONS_SHARE = 0.8
DEAD_ROWS_MIN = 20_000
TRANSACTION_IDS_MAX = 1_000_000_000
LAG_SECONDS = 60.0
KEPT_BYTES = 2**30
CLOCK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Advice:
    kind: str
    severity: Literal["problem", "notice"]
    text: str
    """The trouble."""
    action: str
    """The remedy."""


def of_transaction(seconds: float | None, application: str | None) -> list[Advice]:
    if seconds is None or seconds < OLD_TRANSACTION_SECONDS:
        return []
    who = f"A session of {application}" if application else "A session"
    return [
        Advice(
            "old_transaction", "problem",
            f"{who} has had a transaction open for {minutes(seconds)}. PostgreSQL cannot remove dead rows that are "
            f"younger.",
            "End it: find the session in pg_stat_activity and close it with pg_terminate_backend.",
        )
    ]  # fmt: skip


def of_connections(used: int, most: int) -> list[Advice]:
    if used < most * CONNECTIONS_SHARE:
        return []
    return [
        Advice(
            "connections", "problem", f"{used} of {most} connections are taken.",
            "Raise max_connections, lower the setting database_pool_size, or put PgBouncer between.",
        )
    ]  # fmt: skip


def of_dead_rows(table: str, live: int, dead: int) -> list[Advice]:
    if dead < max(DEAD_ROWS_MIN, live):
        return []
    return [
        Advice(
            "dead_rows", "problem", f"The table {table} has {dead:,} dead rows and {live:,} living ones.",
            "Check that autovacuum is on and that no transaction stays open; then run VACUUM on the table.",
        )
    ]  # fmt: skip


def of_autovacuum(*, is_on: bool, transaction_id_age: int) -> list[Advice]:
    found = []
    if not is_on:
        found.append(
            Advice(
                "autovacuum", "problem", "Autovacuum is off, so tables grow with every change.",
                "Set autovacuum to on in postgresql.conf.",
            )
        )  # fmt: skip
    if transaction_id_age > TRANSACTION_IDS_MAX:
        found.append(
            Advice(
                "transaction_ids", "problem",
                f"The oldest row was written {transaction_id_age:,} transactions ago. At two billion, PostgreSQL "
                f"stops writes.",
                "Look for old transactions and unused replication slots; then run VACUUM FREEZE.",
            )
        )  # fmt: skip
    return found


def of_replication(lags: dict[str, float], kept: dict[str, int]) -> list[Advice]:
    """Seconds that each standby is behind, and bytes kept for each slot that nobody uses."""
    found = [
        Advice(
            "replication_lag", "notice", f"The standby {name} is {minutes(seconds)} behind.",
            "Check its disk and its network. A failover now would lose that time.",
        )
        for name, seconds in lags.items() if seconds > LAG_SECONDS
    ]  # fmt: skip
    found += [
        Advice(
            "unused_slot", "problem", f"The replication slot {name} is unused and keeps {size / 2**30:.1f} GiB of log.",
            "Reconnect its standby, or drop the slot with pg_drop_replication_slot before the disk is full.",
        )
        for name, size in kept.items() if size > KEPT_BYTES
    ]  # fmt: skip
    return found


def of_clock(difference_seconds: float) -> list[Advice]:
    if abs(difference_seconds) < CLOCK_SECONDS:
        return []
    way = "ahead of" if difference_seconds > 0 else "behind"
    return [
        Advice(
            "clock", "notice", f"The clock of this server is {abs(difference_seconds):.1f} s {way} that of the "
            f"database.",
            "Run a time service such as chrony on both machines. Jobs follow the clock of the database.",
        )
    ]  # fmt: skip


def of_archive(errors: Iterable[str], waiting_days: int) -> list[Advice]:
    """`waiting_days`: days of history that are older than their retention and not in the archive."""
    found = [
        Advice(
            "archive", "problem", f"The archive does not take history: {error}",
            "Days of history stay in the database until it does. See docs/archive.md.",
        )
        for error in errors
    ]  # fmt: skip
    if waiting_days:
        days = f"{waiting_days} {'day' if waiting_days == 1 else 'days'} of history past retention"
        action = "None is dropped before the archive has it. `foliot explain archive` shows how far the archive is."
        found.append(Advice("archive_behind", "notice", f"{days} wait in the database for the archive.", action))
    return found


def minutes(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"
