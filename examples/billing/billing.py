"""The task that charges a customer."""

import asyncio

import foliot

app = foliot.App()


@app.task(guarantee="transactional", retries=5)
async def charge(ctx: foliot.Context, customer: int, cents: int) -> int:
    """Charges the account and keeps a receipt, in the transaction that ends the run."""
    left = await ctx.connection.fetchval(
        "update accounts set cents = cents - $2 where customer = $1 returning cents", customer, cents
    )
    # Long enough for a worker to be killed in the middle of some of them.
    await asyncio.sleep(0.1)
    await ctx.connection.execute("insert into receipts (customer, cents) values ($1, $2)", customer, cents)
    return int(left)
