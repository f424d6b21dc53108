"""Opens the accounts, and submits a charge for each customer."""

import asyncio
import os
from pathlib import Path

import asyncpg

from accounts import CENTS, CUSTOMERS
from billing import charge
from foliot.embedded import find_url


async def main() -> None:
    connection = await asyncpg.connect(os.environ.get("DATABASE_URL") or find_url(Path(".foliot")))
    await connection.execute("create table if not exists accounts (customer int primary key, cents bigint)")
    await connection.execute("create table if not exists receipts (customer int, cents bigint)")
    opening = "insert into accounts select number, 10000 from generate_series(1, $1) as number on conflict do nothing"
    await connection.execute(opening, CUSTOMERS)
    await connection.close()
    charges = [{"customer": number, "cents": CENTS} for number in range(1, CUSTOMERS + 1)]
    jobs = await charge.with_options(idempotency_key="charges of March").submit_many_async(charges)
    print(f"{len(jobs)} jobs, from {jobs[0].id} to {jobs[-1].id}")


asyncio.run(main())
