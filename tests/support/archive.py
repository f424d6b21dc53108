"""An archiver on the store of a test, and the rows that its archive holds."""

from __future__ import annotations

import gzip
import io
from collections.abc import Sequence
from typing import Any

import msgspec
from pyarrow import parquet

from foliot.archive.archiver import Archiver
from foliot.archive.destination import Destination, open_destination
from foliot.config import Config
from foliot.model.archive import Kind, Manifest, directory_of, manifest_name
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.runs import finish

DAY_SECONDS = 86_400


def archiver_of(store: Store, config: Config, destination: Destination | None = None) -> Archiver:
    database = store.database
    return Archiver(
        store=store,
        config=config,
        destination=destination or open_destination(config),
        clock=database.clock,
        events=store.events,
    )


async def catch_up(archiver: Archiver) -> None:
    """Archives everything that can be archived now."""
    while await archiver.run_once() == 0.0:
        pass


def manifests(destination: Destination, kind: Kind) -> list[Manifest]:
    days = [name.removeprefix("day=") for name in destination.directories(f"{kind}/")]
    found = [destination.get(f"{kind}/day={day}/manifest.json") for day in days]
    return [msgspec.json.decode(content, type=Manifest) for content in found if content is not None]


def rows_of(destination: Destination, kind: Kind, found: Sequence[Manifest] | None = None) -> list[dict[str, Any]]:
    """The rows of all complete days."""
    rows: list[dict[str, Any]] = []
    for manifest in found if found is not None else manifests(destination, kind):
        assert destination.get(manifest_name(kind, manifest.day))
        for one in manifest.objects:
            content = destination.get(directory_of(kind, manifest.day) + one.name)
            assert content is not None
            rows += _decoded(content, one.name)
    return rows


def _decoded(content: bytes, name: str) -> list[dict[str, Any]]:
    if name.endswith(".parquet"):
        table: list[dict[str, Any]] = parquet.read_table(io.BytesIO(content)).to_pylist()
        return table
    return [msgspec.json.decode(line) for line in gzip.decompress(content).splitlines()]


async def fill(store: Store, clock: FakeClock) -> set[str]:
    """Runs of several namespaces and hours, of this day and the next one."""
    made = []
    for _ in range(2):
        for hour in range(3):
            made.append(await finish(store, output=f"line {hour}\nünd more \x00".encode(), payload='{"n": 1}'))
            made.append(await finish(store, RunState.FAILED, error="out of\nink", queue="shop/mail", task="shop/print"))
            await clock.advance(3600)
        await clock.advance(DAY_SECONDS)
    return {str(run_id) for run_id in made}
