"""The archiver writes every row once, whatever happens, and days are dropped only once they are archived."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foliot.archive import part
from foliot.archive.destination import Destination, open_destination
from foliot.archive_events import ArchiveFailed, DaysAwaitArchive
from foliot.config import Config
from foliot.events import Event, EventBus, PartitionsKept
from foliot.model.archive import KINDS
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.scheduler.pruner import Pruner
from foliot.store.partitions import PARENTS
from foliot.store.store import Store
from tests.support.archive import DAY_SECONDS, archiver_of, catch_up, fill, manifests, rows_of
from tests.support.fake_clock import FakeClock
from tests.support.runs import WORKER, claim, finish, insert

HISTORY = "select count(*) from foliot.history"


@pytest.fixture
def destination(config: Config) -> Destination:
    return open_destination(config)


@pytest.fixture
def pruner(store: Store, fake_clock: FakeClock, events: EventBus) -> Pruner:
    return Pruner(store=store, clock=fake_clock, events=events)


async def fail_once(store: Store) -> None:
    """An attempt that is retried, and succeeds."""
    await insert(store)
    (first,) = await claim(store)
    outcome = Outcome(first.run_id, first.token, RunState.SCHEDULED, "error", 0.0, output=b"first try")
    assert await store.outcomes.retry_runs(WORKER, [outcome]) == 1
    await store.due_runs.promote_due_runs(10)
    (second,) = await claim(store)
    assert await store.outcomes.finish_runs(WORKER, [Outcome(second.run_id, second.token, RunState.SUCCEEDED)]) == 1


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
async def test_every_row_is_archived_once_by_day_and_namespace(
    store: Store, config: Config, destination: Destination, fake_clock: FakeClock, form: str
) -> None:
    config = msgspec.structs.replace(config, archive_format=form)
    ids = await fill(store, fake_clock)
    await fail_once(store)
    await fake_clock.advance(DAY_SECONDS)
    await catch_up(archiver_of(store, config))
    rows = rows_of(destination, "runs")
    assert len(rows) == len(ids) + 1
    assert ids < {row["id"] for row in rows}
    found = manifests(destination, "runs")
    by_namespace = {one.namespace: one.rows for one in found[0].objects}
    assert by_namespace == {"default": 1, "shop": 1}
    assert len(found[0].objects) == 6, "one for each hour and namespace"
    shop = next(row for row in rows if row["task"] == "print")
    assert (shop["queue"], shop["state"]) == ("mail", "failed")
    error = shop["error"] if form == "jsonl" else msgspec.json.decode(shop["error"])
    assert error["message"] == "out of\nink"
    assert next(row for row in rows if row["output"])["output"] == "line 0\nünd more \x00"
    (attempt,) = rows_of(destination, "attempts")
    assert (attempt["outcome"], attempt["output"]) == ("error", "first try")


async def test_a_crash_between_upload_and_record_leaves_the_same_objects(
    store: Store, config: Config, destination: Destination, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "ROWS_MAX", 2)
    ids = [str(await finish(store)) for _ in range(5)]
    await fake_clock.advance(DAY_SECONDS)

    advance = type(store.archives).advance_archive

    async def crash(*arguments: Any) -> bool:
        if arguments[-1]:
            raise ConnectionAbortedError
        return await advance(*arguments)

    dying = archiver_of(store, config)
    with monkeypatch.context() as patched:
        patched.setattr(type(store.archives), "advance_archive", crash)
        with pytest.raises(ConnectionAbortedError):
            await catch_up(dying)
    before = destination.sizes("runs/")
    assert len(before) == 1
    survivor = archiver_of(store, config)
    assert await survivor.run_once() > 0, "the dead one still holds the lease"
    assert destination.sizes("runs/") == before
    await fake_clock.advance(61)
    await catch_up(survivor)
    assert [row["id"] for row in rows_of(destination, "runs")] == ids
    objects = [name for name in destination.sizes("runs/") if not name.endswith("manifest.json")]
    assert len(objects) == 3
    assert before.items() <= destination.sizes("runs/").items()


async def test_a_frozen_archiver_does_not_move_the_place_of_the_next_one(
    store: Store, config: Config, destination: Destination, fake_clock: FakeClock
) -> None:
    ids = [str(await finish(store)) for _ in range(3)]
    await fake_clock.advance(DAY_SECONDS)
    frozen, second = archiver_of(store, config), archiver_of(store, config)
    put, reached, goes_on = type(destination).put, asyncio.Event(), asyncio.Event()

    async def wait(work: Any) -> Any:
        reached.set()
        await goes_on.wait()
        return work()

    frozen._blocking = wait  # type: ignore[method-assign]
    freezing = asyncio.create_task(frozen.run_once())
    await reached.wait()
    await fake_clock.advance(61)
    await catch_up(second)
    days = await store.archives.list_archives()
    goes_on.set()
    await freezing
    assert await store.archives.list_archives() == days
    assert [row["id"] for row in rows_of(destination, "runs")] == ids
    assert put is type(destination).put


async def test_nothing_is_dropped_while_the_archive_is_away_and_all_of_it_afterwards(
    store: Store,
    config: Config,
    destination: Destination,
    fake_clock: FakeClock,
    pruner: Pruner,
    sql: Any,
    seen: list[Event],
) -> None:
    ids = await fill(store, fake_clock)
    directory = Path(config.archive_url)
    directory.rename(directory.with_name("unplugged"))
    archiver = archiver_of(store, config)
    await catch_up(archiver)
    assert "create or mount it" in next(event.error for event in seen if isinstance(event, ArchiveFailed))
    await fake_clock.advance(40 * DAY_SECONDS)
    await pruner.run_once()
    assert await sql.fetchval(HISTORY) == len(ids)
    assert next(event.days for event in seen if isinstance(event, DaysAwaitArchive)) >= 2 * len(PARENTS) - 1
    kept = await store.partitions.oldest_kept()
    assert kept < fake_clock.now() - timedelta(days=40), "workflows are kept for the runs, too"
    state = next(one for one in await store.archives.list_archives() if one.kind == "runs")
    assert state.failing_since is not None
    directory.with_name("unplugged").rename(directory)
    await catch_up(archiver)
    assert {row["id"] for row in rows_of(destination, "runs")} == ids
    assert all(one.failing_since is None for one in await store.archives.list_archives())
    await pruner.run_once()
    assert await sql.fetchval(HISTORY) == 0
    assert any(event.dropped for event in seen if isinstance(event, PartitionsKept))


async def test_rows_that_come_after_their_day_was_archived_are_not_dropped(
    store: Store, config: Config, destination: Destination, fake_clock: FakeClock, pruner: Pruner, sql: Any
) -> None:
    ids = {str(await finish(store))}
    start = fake_clock.now()
    await fake_clock.advance(2 * DAY_SECONDS)
    archiver = archiver_of(store, config)
    await catch_up(archiver)
    # The clock of the database is set back.
    late = await finish(store)
    await sql.execute("update foliot.history set finished_at = $1 where id = $2", start, late)
    ids.add(str(late))
    await fake_clock.advance(40 * DAY_SECONDS)
    await catch_up(archiver)
    await pruner.run_once()
    assert await sql.fetchval(HISTORY) == 2
    await catch_up(archiver)
    await pruner.run_once()
    assert await sql.fetchval(HISTORY) == 0
    assert {row["id"] for row in rows_of(destination, "runs")} == ids


async def test_an_archive_that_lost_an_object_gets_it_again_before_the_day_is_confirmed(
    store: Store, config: Config, destination: Destination, fake_clock: FakeClock, seen: list[Event]
) -> None:
    await finish(store)
    await fake_clock.advance(7200)
    archiver = archiver_of(store, config)
    await catch_up(archiver)
    (path,) = Path(config.archive_url).rglob("*.parquet")
    path.write_bytes(b"garbage")
    await fake_clock.advance(DAY_SECONDS)
    await catch_up(archiver)
    assert "bytes, not" in next(event.error for event in seen if isinstance(event, ArchiveFailed))
    await catch_up(archiver)
    assert len(rows_of(destination, "runs")) == 1


async def test_an_empty_history_confirms_its_days(store: Store, config: Config, fake_clock: FakeClock) -> None:
    await fake_clock.advance(3 * DAY_SECONDS)
    await catch_up(archiver_of(store, config))
    states = await store.archives.list_archives()
    assert [state.kind for state in states] == sorted(KINDS)
    assert all(fake_clock.now() - state.at < timedelta(hours=1) for state in states)
    assert list(Path(config.archive_url).iterdir()) == []
