"""Writes the schema that the migrations make into src/foliot/store/schema.sql, for people to read and review. Never
edited by hand."""

from __future__ import annotations

import asyncio
import re
import subprocess
import tempfile
from pathlib import Path

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.embedded import EmbeddedPostgres
from foliot.embedded.binaries import find_binaries
from foliot.events import EventBus
from foliot.store.store import open_store

TARGET = Path(__file__).resolve().parent.parent / "src" / "foliot" / "store" / "schema.sql"
HEADER = "-- Made by `make schema` from the migrations. Do not edit.\n\n"
# The days of history are data, not schema; and what differs from one pg_dump to the next is noise.
DAYS = "foliot.*_20[0-9][0-9][0-9][0-9][0-9][0-9]"
NOISE = re.compile(r"^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*)\n", re.MULTILINE)


def dump(url: str, data: Path) -> str:
    """The schema of a migrated database, without the noise."""
    pg_dump = Path(find_binaries("", data).postgres).with_name("pg_dump")
    command = [str(pg_dump), "--schema-only", "--no-owner", "--schema=foliot", f"--exclude-table={DAYS}", url]
    dumped = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return HEADER + re.sub(r"\n{3,}", "\n\n", NOISE.sub("", dumped)).strip() + "\n"


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="foliot-schema-") as directory:
        server = EmbeddedPostgres(Path(directory), clock=SystemClock(), settings={"fsync": "off"})
        try:
            url = await server.start()
            async with open_store(url, config=Config(), clock=SystemClock(), events=EventBus(), part="schema") as store:
                await store.migrate()
            TARGET.write_text(dump(url, server.data))
        finally:
            await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
