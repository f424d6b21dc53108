"""The guide to jobs from messages is complete, and its files are valid."""

from __future__ import annotations

import re
from pathlib import Path

from foliot.cli.job_files import read_files
from foliot.cli.source_files import DeclaredSource
from foliot.model.source import BROKERS, Source
from tests.support.processes import ROOT

GUIDE = (ROOT / "docs" / "events-in.md").read_text()


def test_the_files_of_the_guide_are_valid(tmp_path: Path) -> None:
    for number, text in enumerate(re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)):
        (tmp_path / f"{number}.yaml").write_text(text)
    (source,) = read_files([str(tmp_path)])
    assert isinstance(source, DeclaredSource)
    assert source.source.kind == "redis"


def test_the_guide_names_every_field_and_kind() -> None:
    fields = " ".join(line.split("|")[1] for line in GUIDE.splitlines() if line.startswith("| `"))
    assert [name for name in Source.__struct_encode_fields__ if f"`{name}`" not in fields] == []
    assert [kind for kind in BROKERS if f"`{kind}`" not in fields] == []
