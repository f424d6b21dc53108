"""The tasks that benchmarks run."""

import foliot

app = foliot.App()


@app.task
async def noop(**_: object) -> None:
    return None


@app.task
async def one(item: int) -> None:
    return None
