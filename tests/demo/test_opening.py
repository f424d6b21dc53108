"""`foliot up --demo` as people run it: twice, on two ports, over the same directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foliot.demo.shop import ALERT_RULES
from tests.support.api import Api, api_of
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
# The shop's tasks take seconds; nobody waits for them here.
HASTY = {"FOLIOT_GRACE_SECONDS": "0.1"}


@pytest.mark.slow
async def test_the_shop_opens_works_and_opens_again_as_people_left_it(tmp_path: Path) -> None:
    data = tmp_path / "mine"
    async with demo(data) as up, api_of(up) as api:
        await until(lambda: _is_there(api, "/v1/jobs/train-recommendations"))
        assert {one["name"] for one in await _items(api, "/v1/pauses")} == {"newsletter", "old-shop-export"}
        assert {one["name"] for one in await _items(api, "/v1/alert-rules")} == set(ALERT_RULES)
        assert {one["status"] for one in await _items(api, "/v1/jobs")} == {"active", "paused"}
        assert len(await _items(api, "/v1/jobs/nightly-backup/ticks?limit=50")) >= 27
        await until(lambda: _items(api, "/v1/workflows?name=new-collection"))
        await until(lambda: _items(api, "/v1/runs?task=charge_card&state=succeeded"))
        await api.client.delete("/v1/jobs/search-index")
        await api.client.post("/v1/queues/newsletter/resume")
        before = {one["id"] for one in await _items(api, "/v1/jobs")}
    assert not data.exists()
    async with demo(data) as up, api_of(up) as api:
        address = str(api.client.base_url).rstrip("/")

        async def knows_its_address() -> bool:
            job = (await api.client.get("/v1/jobs/orders")).json()
            return bool(job["payload"] == {"url": address})

        await until(knows_its_address)
        assert {one["id"] for one in await _items(api, "/v1/jobs")} == before
        assert [(one["kind"], one["name"]) for one in await _items(api, "/v1/pauses")] == [("job", "old-shop-export")]


def demo(data: Path) -> FoliotProcess:
    return FoliotProcess("up", "--demo", "--data", str(data), "--port", "0", environment=HASTY)


async def _items(api: Api, path: str) -> list[dict[str, Any]]:
    answer = await api.client.get(path)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def _is_there(api: Api, path: str) -> bool:
    return (await api.client.get(path)).status_code == 200
