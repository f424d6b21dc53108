"""The documentation site builds, has every page, and refuses what readers would stumble over."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools.docs_site import shelves

from tests.support.processes import ROOT

pytestmark = pytest.mark.deploy


def test_the_site_has_four_shelves_and_every_page() -> None:
    found = {
        title: pages for shelf in shelves((ROOT / "docs" / "README.md").read_text()) for title, pages in shelf.items()
    }
    assert list(found) == ["Tutorials", "How-to guides", "Reference", "Explanation"]
    pages = [page for shelf in found.values() for page in flat(shelf)]
    assert len(pages) == len(set(pages))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"} <= set(pages)


def flat(shelf: list[object]) -> list[str]:
    return [
        page
        for entry in shelf
        for page in ([str(entry)] if isinstance(entry, str) else flat(next(iter(entry.values()))))  # type: ignore[attr-defined]
    ]


def test_the_site_is_built_without_a_request_to_another_host(tmp_path: Path) -> None:
    built = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert built.returncode == 0, built.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        loaded = re.findall(
            r'<(?:script|img|iframe|link rel="(?:stylesheet|preload)")[^>]*(?:src|href)="(https?:[^"]+)',
            page.read_text(),
        )
        assert loaded == [], page
    # A link to another page reads as its title, and a link to a source file is plain text.
    concepts = (tmp_path / "site" / "concepts" / "index.html").read_text()
    assert re.search(r'<a href="\.\./cron/">Schedules</a>', concepts)
    frameworks = (tmp_path / "site" / "frameworks" / "index.html").read_text()
    assert "worker.py." in frameworks
    assert "django_shop/shop/worker.py" not in frameworks


def test_broken_links_and_pages_without_a_shelf_fail_the_build(tmp_path: Path) -> None:
    changed = {
        "concepts.md": "\nSee [nothing](nowhere.md) and [a heading](cron.md#nowhere).\n",
        "orphan.md": "# Orphan\n",
    }
    built = build(with_pages(changed, tmp_path), tmp_path / "site")
    assert built.returncode != 0
    for complaint in ("nowhere.md", "#nowhere", "orphan.md"):
        assert complaint in built.stderr


def test_code_blocks_that_no_test_runs_fail_the_build(tmp_path: Path) -> None:
    built = build(with_pages({"concepts.md": "\n```bash\nfoliot jobs\n```\n"}, tmp_path), tmp_path / "site")
    assert built.returncode != 0
    assert "concepts.md has code blocks that no test runs" in built.stderr


def with_pages(added: dict[str, str], directory: Path) -> Path:
    """The configuration of a copy of the site, with text added to its pages."""
    shutil.copytree(ROOT / "docs", directory / "docs")
    for name, text in added.items():
        with (directory / "docs" / name).open("a") as page:
            page.write(text)
    configuration = directory / "mkdocs.yml"
    hooks = "tools/docs_site.py"
    configuration.write_text((ROOT / "mkdocs.yml").read_text().replace(hooks, str(ROOT / hooks)))
    return configuration


def build(configuration: Path, target: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--config-file", configuration, "--site-dir", target],
        capture_output=True,
        text=True,
        check=False,
    )
