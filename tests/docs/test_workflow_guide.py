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


async def test_workflow_guide_works(tmp_path: Path) -> None:
    outputs = [output for output in await followed(WORKFLOWS, tmp_path) if output]
    curl, python, data, mended, tiles, release, nightly, recurring, one_off = outputs
    assert re.search(r'"name":"by-curl",[^{]*"status":"completed"', curl)
    assert "{'loaded': 3, 'day': '2026-11-16'}\n['cat.png at 100', 'dog.png at 100']\ncompleted {" in python
    assert re.search(r"check +completed", data)
    before, after = mended.split("STEP")[1:]
    assert re.search(r"fragile +failed", before)
    assert re.search(r"last +skipped .*dependency_failed: fragile", before)
    assert re.search(r"cleanup +completed", before)
    assert re.search(r"last +completed", after)
    assert "200 of 200" in tiles
    assert len(re.findall(r"^[0-9a-f-]{36} +completed +resize", tiles, re.MULTILINE)) == 3
    assert re.search(r"publish +completed", release)
    assert re.search(r"completed +nightly +2 of 2", nightly)
    assert "succeeded" in recurring
    assert re.search(r"^run is waiting: .*1 .*all_success", one_off)


def test_workflow_guide_lists_every_rule() -> None:
    for rule in Rule.__args__:  # type: ignore[attr-defined]
        assert f"| `{rule}` |" in WORKFLOWS
