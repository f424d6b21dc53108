"""The pytest plugin: fixtures that run an app's tasks inside tests. Pytest loads it wherever Foliot is installed.

    # pytest.ini: foliot_app = shop.tasks:app

    def test_an_invoice_is_sent(foliot_bench):
        job = send_invoice.submit(customer_id=7)
        foliot_bench.run()
        assert job.result() == "sent to 7"

The first test that uses a fixture imports the code that runs tasks, so that the plugin costs other tests little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from foliot import App
    from foliot.testing import Bench


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("foliot_app", "The tasks that foliot_bench runs, as MODULE:APP.")


@pytest.fixture
def foliot_app(request: pytest.FixtureRequest) -> App:
    """The app that the setting `foliot_app` names. Override the fixture to return another one."""
    from foliot.sdk.app_loading import load_app

    reference = request.config.getini("foliot_app")
    if not reference:
        pytest.fail("set foliot_app = MODULE:APP in pytest's settings, or override the fixture foliot_app", False)
    return load_app(reference)


@pytest.fixture
def foliot_bench(foliot_app: App) -> Iterator[Bench]:
    """A `foliot.testing.Bench`, which runs the jobs that the test submits. Time stands still until it is advanced."""
    from foliot.testing import inline

    with inline(foliot_app) as bench:
        yield bench
