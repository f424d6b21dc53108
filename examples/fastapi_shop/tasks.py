"""The tasks of the shop."""

import foliot

app = foliot.App()


@app.task(queue="mail", retries=5, timeout=30)
async def send_invoice(order_id: int, customer: str, cents: int) -> str:
    return f"invoice {order_id} over {cents / 100:.2f} sent to {customer}"
