"""The tasks that both pools serve."""

import foliot

app = foliot.App()


@app.task(queue="reports", timeout=3600, process=True)
def monthly_report(month: str) -> str:
    return f"report of {month}"


@app.task
async def greet(name: str) -> str:
    return f"hello {name}"
