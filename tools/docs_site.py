"""Hooks of the documentation site (`mkdocs.yml`, `make site`).

`docs/README.md` decides what the site shows and where: each `##` heading is a shelf, each row of its table a page.
Pages outside `docs/`, such as ARCHITECTURE.md and the READMEs of the examples, appear below `repository/`. Links to
other files of the repository become plain text.

The build fails on a broken link, on a page that no shelf has, and on a page with code blocks that no test runs.
"""

from __future__ import annotations

import ast
import functools
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
INDEX = "README.md"
OUTSIDE = (
    "*.md", "examples/README.md", "examples/*/README.md", "deploy/*/README.md", "clients/*/README.md", "ui/README.md",
)  # fmt: skip
PREFIX = "repository/"
HEADING = re.compile(r"^(?P<level>##|###) (?P<title>.+)$")
LINK = re.compile(r"(?P<is_image>!?)\[(?P<text>[^\]\n]*)\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1 *$", re.MULTILINE | re.DOTALL)
EXECUTED = re.compile(r"^```(bash|python)$", re.MULTILINE)
TITLE = re.compile(r"^# (?P<title>.+)$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    index = (Path(config.docs_dir) / INDEX).read_text()
    config.nav = [{"Home": INDEX}, *shelves(index)]
    return config


def shelves(index: str) -> list[dict[str, Any]]:
    """The navigation: shelves with pages, and below them sections with pages."""
    found: list[dict[str, Any]] = []
    here: list[Any] = []
    for line in index.splitlines():
        if heading := HEADING.match(line):
            below: list[Any] = []
            if heading["level"] == "##":
                found.append({heading["title"]: below})
            else:
                next(iter(found[-1].values())).append({heading["title"]: below})
            here = below
        elif line.startswith("| ") and found:
            here.extend(site_path(link["target"], "docs") for link in LINK.finditer(line))
    return [shelf for shelf in found if next(iter(shelf.values()))]


def site_path(target: str, directory: str) -> str:
    """The place of a page in the site. `directory` is where the link is in the repository."""
    path = posixpath.normpath(posixpath.join(directory, target))
    return path.removeprefix("docs/") if path.startswith("docs/") else PREFIX + path


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in outside_pages():
        name = path.relative_to(ROOT).as_posix()
        files.append(
            File.generated(config, PREFIX + name, content=path.read_text(), inclusion=InclusionLevel.NOT_IN_NAV)
        )
    return files


def outside_pages() -> Iterator[Path]:
    # The README of the project repeats the quickstart. Its place is in front of the code.
    return (path for pattern in OUTSIDE for path in sorted(ROOT.glob(pattern)) if path != ROOT / "README.md")


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    place = page.file.src_uri
    source = place.removeprefix(PREFIX) if place.startswith(PREFIX) else f"docs/{place}"
    if EXECUTED.search(markdown) and not is_run_by_a_test(source):
        raise PluginError(f"{source} has code blocks that no test runs: add the page to a test in tests/docs")

    def linked(link: re.Match[str]) -> str:
        return rewritten(link, source, place, files)

    text, end = [], 0
    for fence in FENCE.finditer(markdown):
        text += [LINK.sub(linked, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*text, LINK.sub(linked, markdown[end:])])


def rewritten(link: re.Match[str], source: str, place: str, files: Files) -> str:
    """The same link, from page to page of the site."""
    target, _, fragment = link["target"].partition("#")
    if not target or ":" in target:
        return link[0]
    found = next((path for path in candidates(target, source) if files.get_file_from_path(path)), None)
    if found is None:
        is_file = (ROOT / posixpath.dirname(source) / target).exists()
        return link["text"] if is_file and not link["is_image"] else link[0]
    relative = posixpath.relpath(found, posixpath.dirname(place) or ".")
    text = link["text"]
    if text == posixpath.basename(target) and not link["is_image"]:
        text = title_of(found) or text
    return f"{link['is_image']}[{text}]({relative}{'#' + fragment if fragment else ''})"


@functools.cache
def title_of(place: str) -> str | None:
    """The title of a page, which reads better in a sentence than the name of its file."""
    path = ROOT / place.removeprefix(PREFIX) if place.startswith(PREFIX) else ROOT / "docs" / place
    heading = TITLE.search(path.read_text()) if path.suffix == ".md" else None
    return heading["title"] if heading else None


def candidates(target: str, source: str) -> Iterator[str]:
    path = site_path(target, posixpath.dirname(source))
    yield path
    yield posixpath.join(path, "README.md")


def is_run_by_a_test(source: str) -> bool:
    """Whether a test runs the blocks of the page."""
    directory, _, name = source.rpartition("/")
    if directory == "docs":
        return name in pages_that_tests_run()
    if directory.startswith("examples/"):
        example = posixpath.basename(directory)
        return any(f'"{example}"' in path.read_text() for path in (ROOT / "tests" / "examples").glob("*.py"))
    # Tests of these pages run the compose file, the manifests, the units or the gate instead of the blocks.
    return True


@functools.cache
def pages_that_tests_run() -> frozenset[str]:
    """The pages in the lists of tests/docs, and those that other tests there pass to `followed`."""
    found: set[str] = set()
    for path in (ROOT / "tests" / "docs").glob("*.py"):
        text = path.read_text()
        for statement in ast.parse(text).body:
            names = [target.id for target in getattr(statement, "targets", ()) if isinstance(target, ast.Name)]
            if "followed(" in text or {"GUIDES", "ALONE", "WITHOUT_SERVER"} & set(names):
                constants = (node.value for node in ast.walk(statement) if isinstance(node, ast.Constant))
                found |= {value for value in constants if isinstance(value, str) and value.endswith(".md")}
    return frozenset(found)
