"""The UI's own unit tests, its types, and the sizes of its files."""

from __future__ import annotations

import json
import subprocess

import pytest
from tools import build_ui

from tests.support.processes import ROOT
from tests.ui.test_journeys import node

__all__ = ["node"]
pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]
# In bytes, compressed with gzip.
SCRIPT_MAX, STYLE_MAX, ROUTE_MAX, ALL_MAX = 190_000, 20_000, 60_000, 500_000


@pytest.mark.parametrize("script", ["test", "types", "typecheck"])
def test_npm_script_passes(node: str, script: str) -> None:
    command = ["npm", "run", "--silent", script]
    done = subprocess.run(command, cwd=ROOT / "ui", capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pages_stay_small(node: str) -> None:
    sizes = json.loads((build_ui.TARGET / "build.json").read_text())["gzip"]
    assert sizes["initialScript"] <= SCRIPT_MAX
    assert sizes["initialStyle"] <= STYLE_MAX
    assert sizes["allScript"] <= ALL_MAX
    assert sizes["routes"], "no page is a route of its own"
    assert {name: size for name, size in sizes["routes"].items() if size > ROUTE_MAX} == {}
