"""The triggers record a real database in the form that the checker reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.run import Claim, NewRun
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.chaos import recorder, tasks
from tests.chaos.checker.check import breaches
from tests.chaos.checker.history import Effect, History, Request, Settings, load
from tests.chaos.recorder import Journal, monotonic_us
from tests.support.runs import claim_runs
from tests.support.schedulers import scheduler_node
from tests.support.workers import ended, submit, worker_node

QUEUES = {"default": 10}


class Bench:
    """A store that records each step, as a client, a job and the database would."""

    def __init__(self, store: Store, sql: Any, directory: Path) -> None:
        self._store = store
        self._sql = sql
        self._directory = directory
        self._journal = Journal(directory)
        self.effects: list[Effect] = []

    async def submit(self, number: int, **fields: Any) -> list[UUID]:
        sent_at = monotonic_us()
        runs = [NewRun(id=new_id(), task="effect", queue="default", **fields) for _ in range(number)]
        await self._store.run_inserts.insert_runs(runs)
        self._journal.write("journal", Request("job", sent_at, monotonic_us(), 201, [str(run.id) for run in runs]))
        return [run.id for run in runs]

    async def claim(self, worker: UUID, number: int) -> list[Claim]:
        claims = await claim_runs(self._store, worker, {"default": number}, ["effect"])
        for claim in claims:
            self.effect("start", claim)
        return claims

    async def succeed(self, worker: UUID, claims: list[Claim]) -> None:
        for claim in claims:
            self.effect("finish", claim)
        await self._store.outcomes.finish_runs(
            worker, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED) for claim in claims]
        )

    def effect(self, kind: str, claim: Claim) -> None:
        self.effects.append(Effect(monotonic_us(), kind, str(claim.run_id), claim.token, 1))  # type: ignore[arg-type]

    async def history(self) -> History:
        self._journal.close()
        ledger = self._directory / "ledger"
        ledger.mkdir()
        (ledger / "1.jsonl").write_bytes(
            b"".join(msgspec.json.encode(effect) + b"\n" for effect in self.effects) + b'[1,"fin'
        )
        offset = recorder.clock_offset()
        now = monotonic_us() + offset
        await recorder.bring_together(self._sql, self._directory, Settings(quiet_at=now, ended_at=now), offset)
        return load(self._directory)


async def register(store: Store) -> UUID:
    worker = new_id()
    await store.workers.register_worker(worker, "worker", QUEUES, ["effect"])
    return worker


async def lived_through(store: Store, sql: Any, directory: Path) -> Bench:
    """Runs that succeed, retry, or are released, cancelled and lost."""
    await recorder.install(sql)
    bench, worker = Bench(store, sql, directory), await register(store)
    plain = await bench.submit(6)
    later = await bench.submit(1, delay_seconds=3600.0)
    claims = await bench.claim(worker, 6)
    assert {claim.run_id for claim in claims} == set(plain)
    await store.outcomes.retry_runs(worker, [Outcome(claims[0].run_id, claims[0].token, RunState.SCHEDULED, "error")])
    await store.outcomes.release_runs(worker, [Outcome(claims[1].run_id, claims[1].token, RunState.READY)])
    await bench.succeed(worker, claims[2:5])
    await store.cancellation.mark_cancelled(later, "no more", is_forced=False)
    await store.cancellation.end_cancelled()
    # The first worker dies with a run; the other one does the rest.
    await sql.execute("update foliot.workers set expires_at = clock_timestamp() where id = $1", worker)
    await store.lost_runs.lose_runs(10, 3)
    await store.due_runs.promote_due_runs(10)
    second = await register(store)
    rest = await bench.claim(second, 10)
    assert sorted(claim.token for claim in rest) == [2, 2, 2]
    await bench.succeed(second, rest)
    return bench


async def test_recorder_writes_a_complete_sound_history(store: Store, sql: Any, tmp_path: Path) -> None:
    history = await (await lived_through(store, sql, tmp_path)).history()
    assert breaches(history) == []
    assert [run.state for run in history.runs].count("succeeded") == 6
    kinds = [change.kind for change in history.changes]
    assert (kinds.count("insert"), kinds.count("delete"), kinds.count("finish")) == (7, 7, 7)
    assert sum(change.after == "running" for change in history.changes) == 9
    assert sum(change.lost for change in history.changes if change.before == "running" and change.kind == "update") == 1


async def test_checker_reports_changes_made_behind_the_stores_back(store: Store, sql: Any, tmp_path: Path) -> None:
    bench = await lived_through(store, sql, tmp_path)
    await sql.execute(
        "update foliot.history set state = 'failed' where id = (select id from foliot.history where state = "
        "'succeeded' limit 1)"
    )
    await sql.execute(
        "delete from foliot.history where id = (select id from foliot.history where state = 'succeeded' limit 1)"
    )
    assert {breach.invariant.number for breach in breaches(await bench.history())} == {1, 11, 35}


async def test_durable_functions_of_the_load_leave_a_sound_history(
    store: Store, sql: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load's own task, on a real worker, with steps that fail at random."""
    await recorder.install(sql)
    bench = Bench(store, sql, tmp_path)
    (tmp_path / "written").mkdir()
    monkeypatch.setenv(tasks.LEDGER, str(tmp_path / "written"))
    monkeypatch.setattr(tasks, "ledger", tasks.Ledger())
    async with scheduler_node(store), worker_node(store, tasks.app):
        for run in [await submit(store, "durable") for _ in range(4)]:
            view = await ended(store, run)
            assert view.state is RunState.SUCCEEDED, view.error
    (file,) = (tmp_path / "written").iterdir()
    bench.effects += [msgspec.json.decode(line, type=Effect) for line in file.read_bytes().splitlines()]
    history = await bench.history()
    assert breaches(history) == []
    kinds = Counter(record.kind for record in history.records)
    assert (kinds["done"], kinds["effect"], kinds["change"]) == (24, 4, 0)
    incomplete = load(tmp_path)
    incomplete.records.pop()
    assert {breach.invariant.number for breach in breaches(incomplete)} == {44}
