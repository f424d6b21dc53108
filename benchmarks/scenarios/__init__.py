"""One file a scenario: its `NAME`, its `TITLE`, and `async def measure(bench) -> Result`. `order.py` names all."""
