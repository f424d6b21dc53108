"""Lists over HTTP, read page by page."""

from __future__ import annotations

from typing import Any

import httpx


async def listed_ids(client: httpx.AsyncClient, path: str = "/v1/runs", **query: Any) -> list[str]:
    """The ids of the items on all pages."""
    found: list[str] = []
    while True:
        answer = await client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += [item["id"] for item in page["items"]]
        if page["next"] is None:
            return found
        query["after"] = page["next"]
