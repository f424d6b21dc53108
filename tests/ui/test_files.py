from __future__ import annotations

import os
from pathlib import Path

import pytest

from foliot.ui.files import Files


def test_without_a_build_there_is_no_page_and_no_file(tmp_path: Path) -> None:
    files = Files(tmp_path / "nothing")
    assert files.index() is None
    assert files.asset("main-1a2b.js") is None
    assert files.third_party() is None


def test_a_new_build_is_seen_without_a_restart(dist: Path) -> None:
    files = Files(dist)
    before = files.index()
    assert before is not None
    assert files.index() is before
    path = dist / "index.html"
    path.write_text("<!doctype html>new")
    os.utime(path, ns=(1, 1))
    after = files.index()
    assert after is not None
    assert after.text == b"<!doctype html>new"
    assert after.etag != before.etag


@pytest.mark.parametrize(
    "name", ["../secret.txt", "..", ".hidden.js", "a/b.js", "main-1a2b.js\x00", "", "main-1a2b.py", "missing.js"]
)
def test_only_files_of_the_assets_with_a_known_kind_are_found(dist: Path, name: str) -> None:
    (dist / "assets" / "main-1a2b.py").write_text("")
    (dist / "assets" / ".hidden.js").write_text("")
    assert Files(dist).asset(name) is None


def test_a_prefix_is_added_to_links_and_passed_to_scripts(dist: Path) -> None:
    index = Files(dist, prefix="/tools/foliot").index()
    assert index is not None
    assert b'src="/tools/foliot/ui/assets/main-1a2b.js"' in index.text
    assert b'name="foliot-prefix" content="/tools/foliot"' in index.text
