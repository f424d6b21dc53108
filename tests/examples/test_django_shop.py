"""The Django shop: its README, and the action in its admin."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from tests.examples.reader import Reader
from tests.support.waiting import until


@pytest.mark.deploy
@pytest.mark.process
async def test_orders_are_invoiced_and_the_admin_sends_invoices_again(tmp_path: Path) -> None:
    async with Reader("django_shop", tmp_path) as reader:
        printed = await reader.follow()
        assert re.search(r'"order": 1.*"sent": 1', printed, re.DOTALL)
        assert "database_url = 'postgresql://foliot@" in printed
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{reader.ports['8080']}", timeout=60) as browser:
            await sign_in(browser)
            action = {
                "action": "send_again",
                "_selected_action": "1",
                "csrfmiddlewaretoken": browser.cookies["csrftoken"],
            }
            done = await browser.post("/admin/shop/order/", data=action, follow_redirects=True)
            assert "1 invoices are on their way" in done.text

            async def is_sent_again() -> bool:
                return bool((await browser.get("/orders/1/")).json()["sent"] == 2)

            await until(is_sent_again)


async def sign_in(browser: httpx.AsyncClient) -> None:
    await browser.get("/admin/login/")
    account = {"username": "root", "password": "secret", "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
    answer = await browser.post("/admin/login/?next=/admin/", data=account)
    assert answer.status_code == 302, answer.text
