"""What is made from code is up to date, and the map shows what is there."""

from __future__ import annotations

import re

from tools.document import METRICS_TARGET, TARGET, metrics_page, page

from foliot.config import setting_names
from tests.support.processes import ROOT


def test_the_configuration_page_is_up_to_date() -> None:
    assert TARGET.read_text() == page(), "run `make docs`"
    for name in setting_names():
        assert f"`{name}`" in TARGET.read_text()


def test_the_page_of_the_metrics_is_up_to_date() -> None:
    assert METRICS_TARGET.read_text() == metrics_page(), "run `make docs`"


def test_every_package_and_module_that_the_map_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:api|scheduler|worker|model|store)/[a-z_/]+\.py)`", text))
    assert len(named) > 8
    for path in named:
        assert (ROOT / "src" / "foliot" / path).exists(), path


def test_no_file_names_a_registry_or_a_machine_path() -> None:
    forbidden = re.compile("|".join(["pypi" + r"\.org", "python" + "hosted", "registry" + r"\.npmjs", "deb" + r"\.debian\.org"]))
    for path in [*ROOT.glob("requirements/*"), *ROOT.glob("*.*"), *ROOT.glob("src/**/*.*")]:
        if path.is_file() and path.suffix in {".txt", ".toml", ".md", ".py", ".sql", ".in"}:
            assert not forbidden.search(path.read_text()), path
