"""Runs the code blocks of the guide to alerts, as a reader would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from foliot.cli.job_files import read_files
from foliot.cli.rule_files import DeclaredRule
from foliot.model.alert_rule import AlertRule, Condition
from tests.docs.test_readme import followed
from tests.support.processes import ROOT

GUIDE = (ROOT / "docs" / "alerts.md").read_text()


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(240)
async def test_following_the_guide_to_alerts_works(tmp_path: Path) -> None:
    _, rules, silences, heartbeats = await followed(GUIDE, tmp_path)
    assert re.search(r"^failures +run_failed +critical", rules, re.MULTILINE)
    assert re.search(r"critical +open +failures +shell .*Run \S+ of shell failed for good", rules)
    assert re.search(r"^\S+ +lag +.*the mail server moves", silences, re.MULTILINE)
    assert "paper is on its way" in silences
    assert "\nno paper\n" in silences
    assert re.search(r"thanks\n(?:.*\n)?nightly-backup .* 1 +local", heartbeats)


def test_the_guide_names_every_condition_and_field() -> None:
    for kind in get_args(Condition):
        row = next(
            line for line in GUIDE.splitlines() if line.startswith("|") and f"`{kind.__struct_config__.tag}`" in line
        )
        assert [field for field in kind.__struct_fields__ if f"`{field}`" not in row] == [], row
    for name in AlertRule.__struct_encode_fields__:
        assert f"| `{name}` |" in GUIDE


def test_the_files_of_the_guide_are_valid(tmp_path: Path) -> None:
    found = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    for number, text in enumerate(found):
        (tmp_path / f"{number}.yaml").write_text(text)
    rule, job = read_files([str(tmp_path)])
    assert isinstance(rule, DeclaredRule)
    assert job.name == yaml.safe_load(found[1])["name"]
