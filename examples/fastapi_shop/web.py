"""The web pages of the shop."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path

import asyncpg
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse

from foliot.embedded import find_url
from foliot.integrations import fastapi as integration
from tasks import send_invoice

# In production, DATABASE_URL names the PostgreSQL that Foliot uses too. Here it is the one of `foliot up`.
DATABASE_URL = os.environ.get("DATABASE_URL") or find_url(Path(".foliot"))
CREDIT_LIMIT = 1_000_000
TABLE = """create table if not exists orders (
    id bigint generated always as identity primary key, customer text not null, cents bigint not null, job text)"""


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with asyncpg.create_pool(DATABASE_URL) as app.state.database, integration.lifespan()(app):
        await app.state.database.execute(TABLE)
        yield


web = FastAPI(title="Shop", lifespan=lifespan)
integration.answer_errors(web)


@web.post("/orders", status_code=201)
async def order(request: Request, customer: str, cents: int) -> dict[str, object]:
    async with request.app.state.database.acquire() as connection, connection.transaction():
        insert = "insert into orders (customer, cents) values ($1, $2) returning id"
        order_id = await connection.fetchval(insert, customer, cents)
        job = await send_invoice.submit_in_async(connection, order_id=order_id, customer=customer, cents=cents)
        await connection.execute("update orders set job = $2 where id = $1", order_id, job.id)
        if cents > CREDIT_LIMIT:
            # Rolls back the order and its job.
            raise HTTPException(422, "this is more than we lend")
    return {"order": order_id, "job": job.id}


@web.get("/orders/{order_id}", response_class=HTMLResponse)
async def status(order_id: int, request: Request, foliot: integration.Foliot) -> str:
    row = await request.app.state.database.fetchrow("select customer, job from orders where id = $1", order_id)
    if row is None:
        raise HTTPException(404, f"there is no order {order_id}")
    state = await foliot.status_async(row["job"])
    refresh = "" if state == "completed" else '<meta http-equiv="refresh" content="1">'
    return f"""<!doctype html><html lang="en"><meta charset="utf-8">{refresh}<title>Order {order_id}</title>
<body style="font: 1.1rem/1.6 system-ui; max-width: 30rem; margin: 4rem auto; color-scheme: light dark">
<h1>Order {order_id}</h1><p>Thank you, {escape(row["customer"])}.</p><p>Your invoice: <strong>{state}</strong></p>"""
