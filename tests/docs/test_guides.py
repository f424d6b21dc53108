"""The guides' blocks are executed, page by page, as a reader would, on one Foliot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_readme import BLOCK, Reader
from tests.support.processes import ROOT

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

GUIDES = ("files.md", "lab.md", "python.md")


def blocks() -> Iterator[tuple[str, str, str]]:
    for guide in GUIDES:
        for found in BLOCK.finditer((ROOT / "docs" / guide).read_text()):
            yield guide, found[1], found[2]


async def test_following_the_guides_works(tmp_path: Path) -> None:
    outputs: dict[str, str] = dict.fromkeys(GUIDES, "")
    reader, is_up = Reader(tmp_path, works_in=tmp_path), False
    try:
        for guide, language, text in blocks():
            # Every guide begins with it; once is enough.
            if text.startswith("make up") and is_up:
                continue
            is_up = is_up or text.startswith("make up")
            outputs[guide] += await reader.follow(language, text)
    finally:
        await reader.stop()
    assert "3 create; dry run: nothing was done\n" in outputs["files.md"]
    assert "3 unchanged\n" in outputs["files.md"]
    assert "1 change, 2 remove\n" in outputs["files.md"]
    assert outputs["files.md"].count("exit code 1") == 2
    assert "completed\nscheduled cancelled\n['completed', 'completed', 'completed']\n" in outputs["python.md"]
    assert "straight completed\nconfiguration\n" in outputs["python.md"]
    assert "active False\nschedule\ncompleted\n" in outputs["python.md"]
    assert "2 passed" in outputs["python.md"]
    assert '"active_workers":2' in outputs["lab.md"]
    assert 'jobs_pending_total{job_type="recurring"} 0.0' in outputs["lab.md"]
