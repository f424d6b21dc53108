"""An app that needs the database."""

from __future__ import annotations

import foliot

app = foliot.App()


@app.task(guarantee="transactional")
async def book(ctx: foliot.Context) -> None: ...
