"""One file for each scenario: its `NAME`, its `TITLE`, and `async def measure(bench) -> Result`. `order.py` lists
them."""
