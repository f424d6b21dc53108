"""Runs the code blocks of the guides page by page, as a reader would, on one Foliot."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from foliot.cli.main import cli
from foliot.model.catchup import Catchup, Reason
from foliot.model.overlap import Overlap
from foliot.model.roles import Role
from foliot.model.states import RunState
from tests.docs.test_readme import BLOCK, Reader
from tests.support.processes import ROOT

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

GUIDES = ("files.md", "lab.md")
# Guides that run on a Foliot of their own, with the output of their blocks.
ALONE = {
    "python.md": (
        r"\{'path': 'cat.png', 'width': 100\}",
        r"completed\nscheduled cancelled\n\['completed', 'completed', 'completed'\]\n",
        r"straight completed\nconfiguration\n",
        r"active False\nschedule\ncompleted\n",
        r"2 passed",
    ),
    "quickstart.md": (
        r"completed +shell +hello",
        r"✓ completed",
        r"1 +error .*ExitCode: exit code 1\n2 +completed",
        r"coffee +completed +shell +water, beans",
    ),
    "cron.md": (
        r"at 12:00, on the second Monday of the month\nevery 10 seconds\n2026-01-01T07:31:00\+00:00\n.*\nexit code 2",
        r"every 7 minutes\n.*\n?at minute 0, at hours 22 to 4, on Friday to "
        r"Monday\n2026-02-13T09:00:00\+01:00\n.*\nuse every: 90m",
        r"overlap +the previous run had not ended",
        r"from 2026-03-28 to 2026-03-29: 2026-03-29T03:00:00\+02:00\n",
        r"4 ticks to run; 0 already ran\n0 ticks to run; 4 already ran",
    ),
    "placeholders.md": (
        r"sales of 2026-03-28, run 1\n",
        r"tick +2026-03-29T03:00:00\+02:00 \(backfill\)\nprevious tick +2026-03-28T02:00:00\+01:00\n",
        r"exit code 2",
        r"\n\{\{\.Names\}\}\n(?:.*\n)*\{\{\.Names\}\}\n",
    ),
    "durable-steps.md": (r"parcel 7, approved by ada\n",),
    "retries.md": (
        r"1 +error .*ConnectionError: .*\n2 +error .*ConnectionError: .*\n3 +completed",
        r"error +ValueError: no retry would help\n(?:.*\n)+?it failed, at its first attempt",
        r'result +"there it is"',
        r"not tried again",
        r" 2 +fetch +default .*ValueError: no retry would help",
        r"completed +fetch",
        r"it failed\nit failed\n(?:.*\n)*closed +circuit ",
    ),
    "exactly-once.md": (
        r"committed: sent to 7\nrolled back: 0 jobs\nleft: 900\nleft: 800\nleft: 700",
        r'"created":true}\n.*"created":false}\nexit code 1',
    ),
    "limits.md": (
        r"closed +concurrency",
        r'"name":"small","max_running":2,"max_depth":3[^}]*}(?:201\n){3,5}(?:429\n){1,3}',
        r"the database is being moved",
    ),
    "deploying.md": (
        r'{"status":"ready"}\nwithout a token: 401\n',
        r"on the worker for heavy things",
        r"active_workers_total [1-9].*\nthe worker has stopped",
    ),
    "security.md": (
        r"exit code 1\n.*the role viewer may not do this",
        r'{"items":\[\],"next":null}403\n',
        r"default/dashboard +\S+ +viewer +default +create_job +403 +forbidden",
        r"shell +this namespace .* local +nobody runs commands here",
        r'"actor":"local".*"action":"create_token"',
        r"error +AddressRefused: (?:.*\n)*refused",
    ),
}  # fmt: skip

# Guides whose blocks need no server, with their output.
WITHOUT_SERVER = {
    "from-cron.md": r"name: Nightly backup\n(?:.*\n)*name: manage-send_queued_mail\n",
    "from-celery.md": r"invoice sent to customer 7\ninvoice sent to customer 8\n",
    "from-rq.md": r"cat.png at 100\ndog.png at 200\n",
    "from-apscheduler.md": r"reminded 7\n",
    "from-airflow.md": r"kind: workflow\nname: sales\ncron: 0 3 \* \* \*\n",
    "from-sidekiq.md": r"invoice sent to customer 7 2\ninvoice sent to customer 8\n",
    "from-temporal.md": r"payment of order 7\n",
    "traces.md": "",
}


def blocks() -> Iterator[tuple[str, str, str]]:
    for guide in GUIDES:
        for found in BLOCK.finditer((ROOT / "docs" / guide).read_text()):
            yield guide, found[1], found[2]


@pytest.mark.slow
async def test_following_the_guides_works(tmp_path: Path) -> None:
    outputs: dict[str, str] = dict.fromkeys(GUIDES, "")
    reader, is_up = Reader(tmp_path, works_in=tmp_path), False
    try:
        for guide, language, text in blocks():
            # Every guide begins with this block; once is enough.
            if text.startswith("make up") and is_up:
                continue
            is_up = is_up or text.startswith("make up")
            outputs[guide] += await reader.follow(language, text)
    finally:
        await reader.stop()
    assert "3 create; dry run: nothing was changed\n" in outputs["files.md"]
    assert "3 unchanged\n" in outputs["files.md"]
    assert "1 change, 2 remove\n" in outputs["files.md"]
    assert outputs["files.md"].count("exit code 1") == 3
    assert '"active_workers":2' in outputs["lab.md"]
    assert 'jobs_pending_total{job_type="recurring"} 0.0' in outputs["lab.md"]


@pytest.mark.slow
@pytest.mark.parametrize("guide", ALONE)
async def test_following_a_guide_works(guide: str, tmp_path: Path) -> None:
    reader, printed = Reader(tmp_path, works_in=tmp_path), ""
    try:
        for found in BLOCK.finditer((ROOT / "docs" / guide).read_text()):
            printed += await reader.follow(found[1], found[2])
    finally:
        await reader.stop()
    for expected in ALONE[guide]:
        assert re.search(expected, printed), f"{guide}: {expected}\n{printed}"


@pytest.mark.parametrize("guide", WITHOUT_SERVER)
async def test_following_a_guide_without_a_server_works(guide: str, tmp_path: Path) -> None:
    reader, printed = Reader(tmp_path, works_in=tmp_path), ""
    for found in BLOCK.finditer((ROOT / "docs" / guide).read_text()):
        printed += await reader.follow(found[1], found[2])
    assert re.search(WITHOUT_SERVER[guide], printed), printed


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"]({page.name})" in index


def test_every_keyword_of_the_code_is_in_its_guide() -> None:
    cron, concepts, security = (
        (ROOT / "docs" / name).read_text() for name in ("cron.md", "concepts.md", "security.md")
    )
    for word in (*get_args(Overlap), *get_args(Catchup), *get_args(Reason)):
        assert f"`{word}`" in cron
    for state in RunState:
        assert f"| `{state}` |" in concepts
    for role in Role:
        assert f"| `{role}` |" in security


def test_the_cron_guide_shows_the_times_that_its_commands_print() -> None:
    """A block of commands, and the block with their output after it."""
    page = (ROOT / "docs" / "cron.md").read_text()
    shown = re.findall(r"^```bash\n((?:foliot cron next .*\n)+)```\n\n```\n((?:\d.*\n)+)```$", page, re.MULTILINE)
    assert len(shown) == 2
    for commands, expected in shown:
        printed = [CliRunner().invoke(cli, shlex.split(line)[1:]).output for line in commands.splitlines()]
        assert "".join(printed) == expected
