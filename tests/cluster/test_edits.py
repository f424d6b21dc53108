"""Recurring jobs are changed, paused and triggered many times a second while they fire: no tick is lost, duplicated or
of the wrong version."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.model.ids import new_id
from foliot.model.schedule import Schedule
from foliot.store.store import Store
from tests.support.api import api_of
from tests.support.jobs import make_job
from tests.support.processes import FoliotProcess
from tests.support.ticks import JobStory, TickNote, TickRun, Version, assert_sound, faults_of, fired_past
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

JOBS = 50
HOT_JOBS = 4
EDITORS = 10
EDITS_EACH = 50
SECONDS = 10
SCHEDULES: list[dict[str, str]] = [
    {"every": "1s"},
    {"every": "2s"},
    {"every": "3s"},
    {"cron": "* * * * * *"},
    {"cron": "*/2 * * * * *"},
    {"cron": "1-59/3 * * * * *"},
]


@pytest.mark.slow
async def test_edits_during_firing_lose_and_duplicate_nothing(database_url: str, store: Store, sql: Any) -> None:
    around = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": "0"}
    async with (
        FoliotProcess("scheduler", environment=around) as first,
        FoliotProcess("scheduler", environment=around) as second,
        FoliotProcess("server", "--open", environment=around) as server,
        api_of(server, part="server") as api,
    ):
        for node in (first, second):
            await node.event("ShardsChanged", count=50)
        made = [
            await make_job(store, every="1s", overlap="allow_all", catchup="all", catchup_max=10_000)
            for _ in range(JOBS)
        ]
        jobs = [job.id for job in made]
        await until(lambda: sql.fetchval("select exists (select from foliot.runs)"))
        answers: Counter[tuple[str, int]] = Counter()
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as editors:
            for seed in range(EDITORS):
                editors.create_task(edit(api.client, jobs, random.Random(seed), f"{seed}", answers))
        # A quiet machine does 50 in a second; a busy one may do far fewer.
        assert answers.total() / (asyncio.get_running_loop().time() - began) > 3
        for job_id in jobs:
            assert (await api.client.post(f"/v1/jobs/{job_id}/resume", json={})).json()["status"] == "active"
        now = await sql.fetchval("select clock_timestamp()")
        await until(lambda: fired_past(sql, now))
        found = await assert_sound(sql)
    # A change or resume that meets another one may be refused with a conflict, and a short pause may have ended before
    # it is read. Nothing else may go wrong.
    assert all(status in (200, 201, 409) for what, status in answers if (what, status) != ("pause until", 422)), answers
    assert sum(count for (_, status), count in answers.items() if status == 409) <= answers.total() // 20
    assert sum(len(story.versions) for story in found) > 5 * JOBS
    assert {note.reason for story in found for note in story.notes} <= {"superseded", "paused"}
    assert sum(len(story.runs) for story in found) > 3 * JOBS


async def edit(
    client: httpx.AsyncClient, jobs: list[UUID], chance: random.Random, name: str, answers: Counter[tuple[str, int]]
) -> None:
    """Edits at a steady rate. Most happen around a whole second, where the ticks are, and half concern the same few
    jobs, so that they collide."""
    for number in range(EDITS_EACH):
        now = datetime.now(UTC).timestamp()
        turn = now + SECONDS / EDITS_EACH
        if chance.random() < 0.8:
            turn = round(turn + 0.3) + chance.uniform(-0.03, 0.01) if number % 5 == 0 else now
        await asyncio.sleep(max(0.0, turn - now))
        job_id = jobs[chance.randrange(HOT_JOBS if chance.random() < 0.5 else JOBS)]
        kind = chance.choice(
            [
                "payload",
                "priority",
                "schedule",
                "schedule",
                "schedule",
                "pause",
                "pause until",
                "resume",
                "resume",
                "trigger",
            ]
        )
        answer = await request(client, job_id, kind, chance, f"{name}-{number}")
        answers[kind, answer.status_code] += 1


async def request(
    client: httpx.AsyncClient, job_id: UUID, kind: str, chance: random.Random, mark: str
) -> httpx.Response:
    path = f"/v1/jobs/{job_id}"
    match kind:
        case "payload":
            return await client.patch(path, json={"payload": {"mark": mark}})
        case "priority":
            return await client.patch(path, json={"priority": chance.randrange(10)})
        case "schedule":
            return await client.patch(path, json=chance.choice(SCHEDULES))
        case "pause until":
            end = datetime.now(UTC) + timedelta(seconds=chance.uniform(0.1, 1.5))
            return await client.post(f"{path}/pause", json={"until": end.isoformat()})
        case _:
            return await client.post(f"{path}/{kind}", json={})


# The oracle itself

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORIGIN = int(START.timestamp())


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def ran(tick: int, payload: str | None = None) -> TickRun:
    return TickRun(ORIGIN + tick, after(tick + 0.004), payload)


SOUND = JobStory(
    job_id=new_id(),
    versions=(
        Version(START, Schedule(every="1s"), None),
        Version(after(5.5), Schedule(every="2s"), "two"),
        Version(after(9.2), Schedule(every="1s"), "three"),
    ),
    runs=(*(ran(tick) for tick in (1, 2, 3)), ran(6, "two"), ran(10, "three"), ran(13, "three")),
    notes=(
        TickNote(ORIGIN + 4, ORIGIN + 5, after(5.5), "superseded"),
        TickNote(ORIGIN + 8, ORIGIN + 8, after(9.2), "superseded"),
        TickNote(ORIGIN + 11, ORIGIN + 12, after(12.3), "paused"),
    ),
    cursor=ORIGIN + 14,
)


def test_the_oracle_accepts_a_correct_history() -> None:
    assert faults_of(SOUND) == []


@pytest.mark.parametrize("number", range(len(SOUND.runs)))
def test_the_oracle_finds_a_lost_duplicate_early_or_wrong_run(number: int) -> None:
    run = SOUND.runs[number]
    rest = SOUND.runs[:number] + SOUND.runs[number + 1 :]
    early = replace(run, created_at=run.created_at - timedelta(seconds=0.1))
    for runs in (
        rest,
        (*SOUND.runs, run),
        (*rest, early),
        (*rest, replace(run, payload="other")),
        (*rest, replace(run, tick=run.tick + 1)),
    ):
        assert faults_of(replace(SOUND, runs=runs)) != []


@pytest.mark.parametrize("number", range(len(SOUND.notes)))
def test_the_oracle_finds_a_lost_duplicate_or_wrong_note(number: int) -> None:
    note = SOUND.notes[number]
    rest = SOUND.notes[:number] + SOUND.notes[number + 1 :]
    for notes in (
        rest,
        (*SOUND.notes, note),
        (*rest, replace(note, first=note.first - 1)),
        (*rest, replace(note, last=note.last + 1)),
    ):
        assert faults_of(replace(SOUND, notes=notes)) != []
