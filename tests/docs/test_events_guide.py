"""Runs the code blocks of the guide to tags, events and notifications, as a reader would."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_readme import followed
from tests.support.processes import ROOT

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]


@pytest.mark.slow
async def test_following_the_guide_to_events_works(tmp_path: Path) -> None:
    output = "".join(await followed((ROOT / "docs" / "events.md").read_text(), tmp_path))
    assert "3 runs would be cancelled\n" in output
    assert output.count('"status":"completed"') >= 2
    assert "simulate completed\n" in output
