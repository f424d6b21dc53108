"""Runs the code blocks of the workflow guide in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foliot.model.workflow import Rule
from tests.docs.test_readme import followed
from tests.support.processes import ROOT

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

WORKFLOWS = (ROOT / "docs" / "workflows.md").read_text()


@pytest.mark.slow
async def test_workflow_guide_works(tmp_path: Path) -> None:
    outputs = [output for output in await followed(WORKFLOWS, tmp_path) if output]
    curl, python, data, orders, branching, conditions, mended, tiles, release, waits, nightly, recurring, one_off = (
        outputs
    )
    assert re.search(r'"name":"by-curl",[^{]*"status":"completed"', curl)
    assert "{'loaded': 3, 'day': '2026-11-16'}\n['cat.png at 100', 'dog.png at 100']\ncompleted {" in python
    assert re.search(r"check +completed", data)
    assert re.search(r"approve +skipped .*steps.check.result.amount is 250", orders)
    assert all(re.search(rf"{key} +completed", orders) for key in ("check", "review", "ship"))
    assert "250 {'check': 'completed', 'large': 'completed', 'small': 'skipped', 'join': 'completed'}" in branching
    assert "50 {'check': 'completed', 'large': 'skipped', 'small': 'completed', 'join': 'completed'}" in branching
    assert re.search(r'"name":"by-condition",[^{]*"status":"completed"', conditions)
    before, after = mended.split("STEP")[1:]
    assert re.search(r"fragile +failed", before)
    assert re.search(r"last +skipped .*dependency_failed: fragile", before)
    assert re.search(r"cleanup +completed", before)
    assert re.search(r"last +completed", after)
    assert "200 of 200" in tiles
    assert len(re.findall(r"^[0-9a-f-]{36} +completed +resize", tiles, re.MULTILINE)) == 3
    assert re.search(r"publish +completed", release)
    assert re.search(r"export +failed .*wait_for_file_directories", waits)
    assert "refused without the setting" in waits
    assert re.search(r"completed +nightly +2 of 2", nightly)
    assert "completed" in recurring
    assert re.search(r"^run is pending: .*1 .*all_success", one_off)


def test_workflow_guide_lists_every_rule() -> None:
    for rule in Rule.__args__:  # type: ignore[attr-defined]
        assert f"| `{rule}` |" in WORKFLOWS
