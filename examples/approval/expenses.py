"""Expenses that a person approves."""

import foliot

app = foliot.App()
LIMIT = 100


async def pay(purpose: str, amount: int) -> str:
    # A real one passes foliot.step_key() to the bank, as its idempotency key.
    return f"paid {amount} for {purpose}"


@app.task(retries=5)
async def expense(ctx: foliot.Context, purpose: str, amount: int) -> str:
    approved_by = "nobody, it is small"
    if amount > LIMIT:
        try:
            approval = await ctx.wait_signal("approval", timeout="7d")
        except foliot.Rejected as rejection:
            return f"declined: {rejection}"
        except foliot.SignalTimeout:
            return "declined: nobody answered within a week"
        approved_by = approval["by"]
    done = await ctx.step("pay", pay, purpose, amount)
    return f"{done}, approved by {approved_by}"
