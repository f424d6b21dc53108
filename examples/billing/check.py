"""Waits until every charge has ended, and compares accounts and receipts."""

import asyncio
import os
from pathlib import Path

import asyncpg

from accounts import CENTS, CUSTOMERS
from billing import charge
from foliot.embedded import find_url


async def main() -> None:
    connection = await asyncpg.connect(os.environ.get("DATABASE_URL") or find_url(Path(".foliot")))
    # The same request again only returns the jobs.
    charges = [{"customer": number, "cents": CENTS} for number in range(1, CUSTOMERS + 1)]
    jobs = await charge.with_options(idempotency_key="charges of March").submit_many_async(charges)
    async with asyncio.timeout(120):
        for job in jobs:
            await job.wait_async()
    charged, twice = await connection.fetchrow(
        "select count(*), count(*) - count(distinct customer) from receipts where cents = $1", CENTS
    )
    wrong = await connection.fetchval("select count(*) from accounts where cents <> 10000 - $1", CENTS)
    await connection.close()
    print(f"{charged} of {CUSTOMERS} customers charged, {twice} charged twice, {wrong} accounts wrong")


asyncio.run(main())
