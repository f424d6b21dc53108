"""The tasks of the nightly load."""

import zlib
from datetime import timedelta

import foliot

app = foliot.App()


@app.task
def find(ctx: foliot.Context) -> list[str]:
    """The files of the day before the night."""
    assert ctx.scheduled_for is not None
    day = (ctx.scheduled_for - timedelta(days=1)).date()
    return [f"{day}/{region}.csv" for region in ("asia", "europe", "america")]


@app.task(queue="load", retries=3)
def load(path: str) -> int:
    """Loads one file and returns the number of its rows. A real one would read the file."""
    return 100 + zlib.crc32(path.encode()) % 900


@app.task
def report(ctx: foliot.Context) -> int:
    """Adds up the rows of all files."""
    assert ctx.scheduled_for is not None
    total = sum(ctx.upstream["load"]["results"])
    print(f"night of {ctx.scheduled_for.date()}: {total} rows from {len(ctx.upstream['load']['results'])} files")
    return int(total)
