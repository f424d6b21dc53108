"""The sources of the UI, its build, and the packages that contain it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools import build_ui, ui_document

from tests.support.processes import ROOT

UI = ROOT / "ui"


def test_the_description_of_the_api_for_the_ui_is_up_to_date() -> None:
    assert ui_document.TARGET.read_text() == ui_document.text(), "run `make docs`"
    assert ui_document.ALERTS_TARGET.read_text() == ui_document.alert_schemas(), "run `make docs`"


def test_the_lock_file_names_no_registry_and_every_version_is_exact() -> None:
    locked = json.loads((UI / "package-lock.json").read_text())
    assert [name for name, one in locked["packages"].items() if "resolved" in one] == []
    wanted = json.loads((UI / "package.json").read_text())
    versions = {**wanted["dependencies"], **wanted["devDependencies"]}
    assert [name for name, version in versions.items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []


def test_the_hash_depends_on_names_and_contents_but_not_on_what_npm_and_tests_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_ui, "SOURCES", tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.ts").write_text("1")
    first = build_ui.hash_of_sources()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "package.js").write_text("2")
    (tmp_path / "src" / "main.test.ts").write_text("3")
    assert build_ui.hash_of_sources() == first
    (tmp_path / "src" / "main.ts").write_text("4")
    second = build_ui.hash_of_sources()
    (tmp_path / "src" / "main.ts").rename(tmp_path / "src" / "other.ts")
    assert len({first, second, build_ui.hash_of_sources()}) == 3


def test_without_node_the_ui_is_left_out_with_one_line(tmp_path: Path) -> None:
    work = _copy_of_the_builder(tmp_path)
    done = _run(work, "--if-possible", path="/nowhere")
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1
    assert "Node.js 20.19 or newer" in done.stderr
    assert "make ui" in done.stderr
    failed = _run(work, path="/nowhere")
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: ")


def test_an_outdated_node_is_recognized(tmp_path: Path) -> None:
    work = _copy_of_the_builder(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, said in (("node", "v18.20.4"), ("npm", "10.0.0")):
        (programs / name).write_text(f"#!/bin/sh\necho {said}\n")
        (programs / name).chmod(0o755)
    done = _run(work, path=str(programs))
    assert done.returncode == 1
    assert "and this is v18.20.4" in done.stderr


def test_a_build_of_the_same_sources_is_used_again_without_node(tmp_path: Path) -> None:
    work = _copy_of_the_builder(tmp_path)
    code = "from tools import build_ui; print(build_ui.hash_of_sources())"
    wanted = subprocess.run(
        [sys.executable, "-c", code], cwd=work, capture_output=True, text=True, check=True
    ).stdout.strip()
    record = work / "src" / "foliot" / "ui" / "dist" / "build.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"sources": wanted}))
    assert _run(work, path="/nowhere").returncode == 0
    (work / "ui" / "index.html").write_text("changed")
    assert _run(work, path="/nowhere").returncode == 1


def _copy_of_the_builder(directory: Path) -> Path:
    work = directory / "work"
    (work / "tools").mkdir(parents=True)
    (work / "ui").mkdir()
    (work / "tools" / "__init__.py").touch()
    shutil.copy(ROOT / "tools" / "build_ui.py", work / "tools")
    for name in ("index.html", "package-lock.json"):
        shutil.copy(UI / name, work / "ui")
    return work


def _run(work: Path, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "tools/build_ui.py", *arguments],
        cwd=work,
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
