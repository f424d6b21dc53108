"""Records a cluster's history while it runs, and assembles it at the end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from foliot.model.run import RunOptions
from tests.chaos import tasks
from tests.chaos.checker.history import (
    FILES,
    Effect,
    Fault,
    Memory,
    Request,
    Run,
    Settings,
    Taken,
    Workflow,
    read_lines,
    write_lines,
)

TRIGGERS = Path(__file__).with_name("recorder.sql")
CHANGES = """
select seq, at, began_at, transaction, writer, kind, run_id::text, before, after, token, attempt, lost,
    coalesce(worker_id::text, ''),
    due_at, is_cancelled
from chaos.changes order by seq
"""
LEASES = (
    "select seq, at, kind, id, writer, owner, owner_before, epoch, expires_at, expired_at from chaos.leases "
    "order by seq"
)
RECORDS = "select seq, at, kind, run_id::text, name, token, lost from chaos.records order by seq"
PAID = "select at, run_id::text, token from chaos.paid"
MARKS = """
select payload ->> 'mark', id::text, token from foliot.runs where task = 'quick'
union all
select payload ->> 'mark', id::text, token from foliot.history where task = 'quick'
"""
RUNS = """
select id::text, true, state, '', token, attempt, lost, chaos.us(created_at), chaos.us(due_at), chaos.us(started_at),
    0, task, queue,
    coalesce(job_id::text, ''), case when job_id is null then 0 else chaos.us(tick_at) end, coalesce(parent_id::text,
        ''),
    coalesce(step, ''), coalesce(rerun_of::text, ''), coalesce(upstream::text[], '{}'), 0, options::text,
    case when job_id is not null then payload::text end, priority
from foliot.runs
union all
select id::text, false, state, coalesce(reason, ''), token, attempt, lost, chaos.us(created_at), chaos.us(due_at),
    chaos.us(started_at),
    chaos.us(finished_at), task, queue, coalesce(job_id::text, ''), case when job_id is null then 0
        else chaos.us(tick_at) end,
    coalesce(parent_id::text, ''), coalesce(step, ''), coalesce(rerun_of::text, ''), coalesce(upstream::text[], '{}'),
    coalesce(octet_length(output), 0), options::text, case when job_id is not null then payload::text end, priority
from foliot.history
"""
JOBS = """
select j.id::text, j.name, j.shard, coalesce(j.schedule ->> 'overlap', 'skip'), chaos.us(j.next_at),
    (
        select json_agg(json_build_array(chaos.us(made_at), (definition -> 'schedule')::text, definition ->> 'payload')
            order by version)
        from foliot.job_versions where job_id = j.id
    )::text,
    (
        select coalesce(json_agg(json_build_array(
            chaos.us(tick_at), chaos.us(coalesce(until_at, tick_at)), chaos.us(noted_at), reason
        )), '[]')
        from foliot.ticks where job_id = j.id
    )::text,
    (
        select coalesce(array_agg(upstream_id::text order by upstream_id), '{}') from foliot.job_dependencies
        where job_id = j.id
    ),
    exists (select from foliot.job_dependencies where job_id = j.id and fires)
from foliot.jobs j
"""
NO_OPTIONS = RunOptions()
decode_options = msgspec.json.Decoder(RunOptions).decode


def monotonic_us() -> int:
    """The clock of journal and ledger: the machine's clock, which no fault changes."""
    return time.monotonic_ns() // 1000


class Journal:
    """The clients' requests, on disk as soon as they are known."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, BinaryIO] = {}
        self._encoder = msgspec.json.Encoder()

    def write(self, name: str, record: msgspec.Struct) -> None:
        if name not in self._files:
            self._files[name] = (self._directory / f"{name}.raw").open("ab")
        self._files[name].write(self._encoder.encode(record) + b"\n")

    def close(self) -> None:
        for file in self._files.values():
            file.close()


async def install(sql: Any) -> None:
    await sql.execute(TRIGGERS.read_text())


def clock_offset() -> int:
    """How far the database's clock is ahead of ours, in microseconds: the best of several readings. The database runs
    on this machine, so its clock is read here: on a busy machine, the answer to a query would come too late."""
    found = []
    for _ in range(20):
        before, there, after = monotonic_us(), time.time_ns() // 1000, monotonic_us()
        found.append((after - before, there - (before + after) // 2))
    return min(found)[1]


async def bring_together(sql: Any, directory: Path, settings: Settings, offset: int) -> None:
    """The whole history, as the checker reads it."""
    journal = [
        _moved(request, offset, "sent_at", "answered_at") for request in read_lines(directory / "journal.raw", Request)
    ]
    effects: list[Effect] = [
        effect for file in sorted((directory / "ledger").glob("*.jsonl")) for effect in _whole_lines(file)
    ]
    faults = [
        _moved(fault, offset, "since", "until", "healed_at") for fault in read_lines(directory / "faults.raw", Fault)
    ]
    workflows = list(read_lines(directory / "workflows.raw", Workflow))
    memory = [_moved(sample, offset, "at") for sample in read_lines(directory / "memory.raw", Memory)]
    taken = [_moved(sample, offset, "since", "until") for sample in read_lines(directory / "taken.raw", Taken)]
    write_lines(directory / "journal.jsonl", journal)
    marks = {mark: (run_id, token) for mark, run_id, token in await sql.fetch(MARKS)}
    for effect in effects:
        effect.at += offset
        # Such a run starts at most once, so it started under its last token.
        effect.run_id, effect.token = marks.get(effect.run_id, (effect.run_id, effect.token))
    effects += [Effect(at, "commit", run_id, token, 0) for at, run_id, token in await sql.fetch(PAID)]
    effects.sort(key=_instant)
    write_lines(directory / "ledger.jsonl", effects)
    write_lines(directory / "faults.jsonl", faults)
    write_lines(directory / "workflows.jsonl", workflows)
    write_lines(directory / "memory.jsonl", memory)
    write_lines(directory / "taken.jsonl", taken)
    async with sql.transaction(isolation="repeatable_read", readonly=True):
        for name, query in (("changes", CHANGES), ("leases", LEASES), ("records", RECORDS)):
            _write_rows(directory / f"{name}.jsonl", [tuple(row) async for row in sql.cursor(query, prefetch=10_000)])
        rules = {(workflow.id, step.key): step.rule for workflow in workflows for step in workflow.steps}
        write_lines(directory / "runs.jsonl", [_run(row, rules) async for row in sql.cursor(RUNS, prefetch=10_000)])
        _write_rows(
            directory / "jobs.jsonl",
            [
                (*row[:5], msgspec.json.decode(row[5]), msgspec.json.decode(row[6]), *row[7:])
                for row in await sql.fetch(JOBS)
            ],
        )
    (directory / "settings.json").write_bytes(msgspec.json.encode(settings))
    for name in FILES:
        (directory / f"{name}.raw").unlink(missing_ok=True)


def _moved(record: Any, offset: int, *names: str) -> Any:
    for name in names:
        if getattr(record, name):
            setattr(record, name, getattr(record, name) + offset)
    return record


def _instant(effect: Effect) -> int:
    return effect.at


def _whole_lines(path: Path) -> Iterator[Effect]:
    """A killed process may leave half a line; that effect had not happened yet."""
    decoder = msgspec.json.Decoder(Effect)
    for line in path.read_bytes().split(b"\n")[:-1]:
        yield decoder.decode(line)


def _write_rows(path: Path, rows: Iterable[Sequence[object]]) -> None:
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        file.writelines(encoder.encode(row) + b"\n" for row in rows)


def _run(row: Any, rules: dict[tuple[str, str], str]) -> Run:
    *columns, upstream, output_bytes, options, payload, priority = row
    run = Run(*columns)
    run.upstream, run.output_bytes, run.payload, run.priority = upstream, output_bytes, payload, priority
    said = decode_options(options) if options else NO_OPTIONS
    known = tasks.app.tasks.get(run.task)
    complete = said.or_else(known.options) if known else said
    run.retries = tasks.RETRIES if complete.retries is None else complete.retries
    run.guarantee = complete.guarantee or ""
    run.timeout_seconds = complete.timeout_seconds or run.timeout_seconds
    run.has_ledger = known is not None
    run.rule = rules.get((run.parent_id, run.step), "")
    if said.concurrency is not None:
        run.concurrency_key, run.concurrency_limit = said.concurrency.key, said.concurrency.limit
    return run
