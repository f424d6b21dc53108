"""Access to PostgreSQL: a pool, time limits on every session, and retries that survive restarts and failovers.

Every session has connect, statement, lock and idle-in-transaction limits. A statement that fails for a temporary reason
(a restart, a lost connection, a demoted node, a deadlock) is retried with jitter for `database_retry_seconds`, if it is
idempotent or certainly did nothing. After that, the caller gets `StoreUnavailable`. A write for a day without a
partition creates the day and is retried; no caller has to handle this.

Behind a pooler in transaction mode (such as PgBouncer, which is detected) a session lasts for one transaction only.
There each statement runs in a transaction that begins with its limits, and nothing is prepared on the server.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from random import uniform
from typing import Any, TypeVar

import asyncpg

from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import StoreUnavailable
from foliot.events import EventBus, StoreInterrupted
from foliot.store.database_errors import Fault, is_read_only, judge, lacks_partition, leaves_session_unusable
from foliot.store.queries import Query, together

T = TypeVar("T")
Statement = Callable[[Any], Awaitable[T]]
"""Sends itself on a given session."""
# A cached plan may date from when tables were empty, so it must not read whole tables.
PLANNED_ONCE = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off"}
# Statements are short: to compile one takes longer than to run it. PostgreSQL would, where it must estimate without
# statistics, or without the plans that PLANNED_ONCE forbids.
UNCOMPILED = {"jit": "off"}
Record = Any  # asyncpg ships no types; one typed method reads the columns of each query


FIRST_PAUSE_SECONDS = 0.02
LAST_PAUSE_SECONDS = 1.0
# The server ends a statement at its own limit first. This one detects a server that no longer responds.
SILENCE_SECONDS = 2.0
MAINTENANCE_SECONDS = 60
# Shorter than the time after which firewalls and NAT forget an idle connection.
IDLE_SECONDS = 60
AT_HAND = 2
"""Sessions kept outside the pool: one for a loop that reads, and one for a loop that writes."""


class Session(asyncpg.Connection):
    """A connection that is not reset when it returns to the pool: Foliot leaves no session state behind, and a reset
    costs a round trip."""

    __slots__ = ()

    def get_reset_query(self) -> str:
        return ""


class Transaction:
    """Runs statements inside one transaction, with the methods of `Database`. It retries none of them."""

    def __init__(self, session: Any, *, is_repetition: bool) -> None:
        self._session = session
        self.is_repetition = is_repetition
        """An earlier try may have committed."""

    async def fetch(
        self, query: Query, *arguments: object, is_repeatable: bool = True, **named: object
    ) -> list[Record]:
        found: list[Record] = await self._session.fetch(query.sql, *(arguments or query.arranged(named)))
        return found

    async def fetch_row(self, query: Query, *arguments: object, **named: object) -> Record | None:
        return await self._session.fetchrow(query.sql, *(arguments or query.arranged(named)))

    async def fetch_value(self, query: Query, *arguments: object, **named: object) -> Any:
        return await self._session.fetchval(query.sql, *(arguments or query.arranged(named)))

    async def execute(self, query: Query, *arguments: object, **named: object) -> None:
        await self._session.execute(query.sql, *(arguments or query.arranged(named)))


class Beside:
    """Combines each fetched statement with another one that writes, so that both take effect or neither does."""

    def __init__(self, database: Database, query: Query, again: Query, *arguments: object) -> None:
        """`again` writes the missing rows of `query`, and takes the same arguments."""
        self._database = database
        self._query = query
        self._again = again
        self._arguments = arguments

    async def fetch(self, query: Query, *arguments: object, is_repeatable: bool = True) -> list[Record]:
        both = together(query, self._query)
        return await self._database.fetch(both, *arguments, *self._arguments, is_repeatable=is_repeatable)

    async def write_again(self, within: Transaction) -> None:
        """Writes the missing rows, in a transaction that repeats a statement which may have committed."""
        await within.execute(self._again, *self._arguments)


class Database:
    """All access to PostgreSQL. Use as `async with Database(...)`."""

    def __init__(
        self,
        url: str,
        *,
        config: Config,
        clock: Clock,
        events: EventBus,
        part: str = "foliot",
        plans_once: bool = False,
    ) -> None:
        """`plans_once` suits a process that repeats a few statements, each of which looks rows up by key."""
        self.url = url
        self._plans_once = plans_once
        self.clock = clock
        self.is_pooled = False
        self._config = config
        self._events = events
        self._part = part
        self._pool: Any = None
        self._at_hand: list[tuple[Any, float]] = []
        """Sessions kept outside the pool, and when each was last used."""
        self._waiting = 0
        """The number of callers that wait for a session. A free session goes back to the pool for them."""
        self.make_days: Callable[[], Awaitable[object]] | None = None
        """Creates the partitions of the days around now."""

    async def __aenter__(self) -> Database:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        self.is_pooled = await self._retrying("connect", self._meets_a_pooler, is_repeatable=True)
        self._pool = asyncpg.create_pool(
            self.url,
            min_size=0,
            max_size=self._config.database_pool_size,
            connection_class=Session,
            statement_cache_size=0 if self.is_pooled else 256,
            max_inactive_connection_lifetime=IDLE_SECONDS,
            command_timeout=self._config.database_statement_seconds + SILENCE_SECONDS,
            **self.connect_arguments(),
        )
        await self._pool

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        self._at_hand.clear()
        if pool is not None:
            pool.terminate()

    def connect_arguments(self) -> dict[str, Any]:
        settings = {"application_name": self._part}
        if not self.is_pooled:
            settings |= {name: f"{milliseconds}ms" for name, milliseconds in self._limits().items()}
            settings |= UNCOMPILED | (PLANNED_ONCE if self._plans_once else {})
        return {
            "timeout": self._config.database_connect_seconds,
            "server_settings": settings,
            "target_session_attrs": "any" if self.is_pooled else "read-write",
        }

    # Arguments are named. Frequent statements pass them by position, in the order in which the query declares them.

    async def fetch(
        self, query: Query, *arguments: object, is_repeatable: bool = True, **named: object
    ) -> list[Record]:
        given = arguments or query.arranged(named)
        return await self._run(query, is_repeatable, lambda session: session.fetch(query.sql, *given))

    async def fetch_row(
        self, query: Query, *arguments: object, is_repeatable: bool = True, **named: object
    ) -> Record | None:
        given = arguments or query.arranged(named)
        return await self._run(query, is_repeatable, lambda session: session.fetchrow(query.sql, *given))

    async def fetch_value(self, query: Query, *arguments: object, is_repeatable: bool = True, **named: object) -> Any:
        given = arguments or query.arranged(named)
        return await self._run(query, is_repeatable, lambda session: session.fetchval(query.sql, *given))

    async def execute(self, query: Query, *arguments: object, is_repeatable: bool = True, **named: object) -> int:
        """Returns the number of rows written."""
        given = arguments or query.arranged(named)
        status: str = await self._run(query, is_repeatable, lambda session: session.execute(query.sql, *given))
        return int(status.rpartition(" ")[2])

    async def command(self, name: str, sql: str) -> None:
        """Runs a statement that PostgreSQL accepts only outside of transactions."""

        async def work() -> None:
            async with self._session() as session:
                await session.execute(f"set statement_timeout = {MAINTENANCE_SECONDS * 1000}")
                try:
                    await session.execute(sql, timeout=MAINTENANCE_SECONDS + SILENCE_SECONDS)
                finally:
                    await session.execute("reset statement_timeout")

        await self._retrying(name, work, is_repeatable=True)

    @asynccontextmanager
    async def transaction(
        self, *, statement_seconds: float = MAINTENANCE_SECONDS, idle_seconds: float | None = None
    ) -> AsyncIterator[Any]:
        """One transaction on one session. It is not retried."""
        async with self._session() as session:
            await session.execute(self._begin(statement_seconds, idle_seconds))
            try:
                yield session
            except BaseException:
                if not session.is_closed():
                    await session.execute("rollback")
                raise
            await session.execute("commit")

    async def in_its_end(self, session: Any, write: Callable[[], Awaitable[T]]) -> T:
        """Runs the last write of a transaction that a task has used. From now on the usual limit for idle transactions
        applies. If a partition is missing, it is created, and the transaction keeps its earlier changes."""
        limit = self._limits()["idle_in_transaction_session_timeout"]
        await session.execute(f"set local idle_in_transaction_session_timeout = {limit}; savepoint the_end")
        try:
            return await write()
        except Exception as error:
            if not lacks_partition(error) or self.make_days is None:
                raise
            # Also releases the locks of the write, because the creation of the day must not wait for this transaction.
            await session.execute("rollback to savepoint the_end")
            await self.make_days()
            return await write()

    async def in_transaction(
        self, name: str, work: Callable[[Transaction], Awaitable[T]], *, statement_seconds: float | None = None
    ) -> T:
        """Runs several statements in one transaction, and starts again after a temporary error. So `work` must change
        nothing if it is repeated after a commit."""

        attempts = itertools.count()

        async def attempt() -> T:
            is_repetition = next(attempts) > 0
            async with self.transaction(
                statement_seconds=statement_seconds or self._config.database_statement_seconds
            ) as session:
                return await work(Transaction(session, is_repetition=is_repetition))

        return await self._retrying(name, attempt, is_repeatable=True)

    async def _run(self, query: Query, is_repeatable: bool, statement: Statement[T]) -> T:
        work = self._in_its_own_transaction if self.is_pooled else self._alone
        return await self._retrying(query.name, partial(work, statement), is_repeatable=is_repeatable)

    async def _in_its_own_transaction(self, statement: Statement[T]) -> T:
        async with self.transaction(statement_seconds=self._config.database_statement_seconds) as session:
            return await statement(session)

    async def _alone(self, statement: Statement[T]) -> T:
        """Runs a statement outside of a transaction, as nearly all are. The session stays at hand for the next one,
        because taking one from the pool and returning it costs as much as a short statement."""
        session = await self._taken()
        try:
            found = await statement(session)
        except BaseException as error:
            await self._returned(session, error)
            raise
        if len(self._at_hand) < AT_HAND and not self._waiting and self._pool is not None:
            self._at_hand.append((session, self.clock.monotonic()))
        else:
            await self._returned(session)
        return found

    async def _retrying(self, name: str, work: Callable[[], Awaitable[T]], *, is_repeatable: bool) -> T:
        give_up_at = self.clock.monotonic() + self._config.database_retry_seconds
        attempt = 0
        is_making_days, make_days = False, self.make_days
        while True:
            try:
                if is_making_days and make_days is not None:
                    await make_days()
                    make_days = None
                return await work()
            except Exception as error:
                if make_days is not None and lacks_partition(error):
                    # The statement did nothing, so it need not wait.
                    is_making_days = True
                    continue
                fault = judge(error)
                if fault is Fault.LASTING:
                    raise
                attempt += 1
                may_repeat = is_repeatable or fault is Fault.CLEAN
                if not may_repeat or self.clock.monotonic() >= give_up_at:
                    raise StoreUnavailable(
                        f"PostgreSQL: {name}: {type(error).__name__}: {error}", is_doubtful=fault is Fault.DOUBTFUL
                    ) from error
                self._events.emit(StoreInterrupted(name, f"{type(error).__name__}: {error}", attempt))
            # Full jitter, so that a server that comes back does not meet all clients at once.
            await self.clock.sleep(uniform(0, min(FIRST_PAUSE_SECONDS * 2**attempt, LAST_PAUSE_SECONDS)))  # noqa: S311

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Any]:
        session = await self._taken()
        try:
            yield session
        except BaseException as error:
            await self._returned(session, error)
            raise
        await self._returned(session)

    async def _taken(self) -> Any:
        while self._at_hand:
            session, since = self._at_hand.pop()
            # A firewall or NAT may have dropped a session that was idle for longer.
            if self.clock.monotonic() - since < IDLE_SECONDS and not has_ended(session):
                return session
            end(session)
        if self._pool is None:
            raise StoreUnavailable("PostgreSQL: the store is closed")
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=self._config.database_connect_seconds)
        finally:
            self._waiting -= 1

    async def _returned(self, session: Any, error: BaseException | None = None) -> None:
        """Returns a session to the pool, or ends it after an error that makes it unusable."""
        if error is not None and is_read_only(error):
            # The node was demoted. Its connections look healthy, but every write on them would fail.
            for other, _ in self._at_hand:
                end(other)
            self._at_hand.clear()
            end(session)
            if self._pool is not None:
                await self._pool.expire_connections()
        elif error is not None and leaves_session_unusable(error):
            end(session)
        if self._pool is None:
            return
        try:
            await self._pool.release(session)
        except Exception:
            # The pool releases in a task of the loop, and a job may have set a task factory that raises. A session that
            # stays taken is lost to the process.
            end(session)

    async def _meets_a_pooler(self) -> bool:
        """Detects a pooler: it reports a process id of its own."""
        session = await asyncpg.connect(self.url, timeout=self._config.database_connect_seconds, statement_cache_size=0)
        try:
            async with session.transaction():
                return bool(await session.fetchval("select pg_backend_pid()") != session.get_server_pid())
        finally:
            await session.close(timeout=self._config.database_connect_seconds)

    def _limits(self) -> dict[str, int]:
        return {
            "statement_timeout": int(self._config.database_statement_seconds * 1000),
            "lock_timeout": int(self._config.database_lock_seconds * 1000),
            "idle_in_transaction_session_timeout": int(self._config.database_idle_in_transaction_seconds * 1000),
            # Ends a statement soon after its client has disconnected, instead of at its limit.
            "client_connection_check_interval": 1000,
        }

    def _begin(self, statement_seconds: float, idle_seconds: float | None) -> str:
        limits = self._limits() | {"statement_timeout": int(statement_seconds * 1000)}
        if idle_seconds is not None:
            limits["idle_in_transaction_session_timeout"] = int(idle_seconds * 1000)
        return "; ".join(["begin", *(f"set local {name} = {milliseconds}" for name, milliseconds in limits.items())])


def has_ended(session: Any) -> bool:
    try:
        return bool(session.is_closed())
    except asyncpg.InterfaceError:
        # The pool has noticed the end, and has taken the session back.
        return True


def end(session: Any) -> None:
    """Closes a session at once, and makes room in the pool, unless the pool had noticed its end before."""
    with suppress(asyncpg.InterfaceError):
        session.terminate()
