"""The files around the code: workflows, templates and checks name what exists, and fit each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.processes import ROOT

GITHUB = ROOT / ".github"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
# YAML 1.1 reads the key `on` as true.
ON: Any = True


def workflow(name: str) -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load((GITHUB / "workflows" / name).read_text())
    return read


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(name)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", sorted(GITHUB.rglob("*.yml")), ids=lambda path: path.name)
def test_yaml_is_readable(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_tests_run_on_every_supported_python_and_postgresql() -> None:
    matrix = workflow("tests.yml")["jobs"]["test"]["strategy"]["matrix"]
    prefix = "Programming Language :: Python :: 3."
    supported = [f"3.{text.removeprefix(prefix)}" for text in PROJECT["project"]["classifiers"] if prefix in text]
    assert matrix["python"] == supported
    assert PROJECT["project"]["requires-python"] == f">={supported[0]}"
    assert matrix["postgresql"] == ["15", "16", "17", "18"]


@pytest.mark.parametrize("name", ["tests.yml", "release.yml"])
def test_workflows_call_make_targets_that_exist(name: str) -> None:
    called = {target for step in steps(name) for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))}
    assert called
    assert called <= TARGETS


@pytest.mark.parametrize("name", ["tests.yml", "release.yml"])
def test_workflows_get_no_more_permissions_than_they_need(name: str) -> None:
    read = workflow(name)
    assert read["permissions"] == {"contents": "read"}
    for job in read["jobs"].values():
        assert job["timeout-minutes"] <= 45
        for step in job["steps"]:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[\w./-]+", step.get("uses", "a/b@v1"))
            if step.get("uses", "").startswith("actions/checkout"):
                assert step["with"]["persist-credentials"] is False


def test_release_is_made_from_tags_with_provenance_and_a_bill_of_materials() -> None:
    assert workflow("release.yml")[ON]["push"] == {"tags": ["v*"]}
    used = " ".join(step.get("uses", "") for step in steps("release.yml"))
    assert "attest-build-provenance" in used
    assert "attest-sbom" in used


def test_dependabot_watches_directories_that_have_the_files() -> None:
    files = {"pip": "pyproject.toml", "npm": "package-lock.json", "github-actions": ".github/workflows"}
    files["docker"] = "Dockerfile"
    updates = yaml.safe_load((GITHUB / "dependabot.yml").read_text())["updates"]
    assert {"pip", "npm", "github-actions"} <= {update["package-ecosystem"] for update in updates}
    for update in updates:
        assert (ROOT / update["directory"].strip("/") / files[update["package-ecosystem"]]).exists()


def test_issue_forms_name_commands_that_exist() -> None:
    for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        if path.name != "config.yml":
            assert {"name", "description", "body"} <= set(form)
            ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
            assert len(ids) == len(set(ids))


def test_pre_commit_runs_programs_of_the_environment() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    for hook in config["repos"][0]["hooks"]:
        assert (ROOT / hook["entry"].split()[0]).exists(), hook["entry"]


def test_the_gate_runs_the_tests_of_the_packages_too() -> None:
    assert re.search(r"^make check test test-deploy\b", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)


def test_no_file_around_the_code_names_a_registry_or_a_download_address() -> None:
    forbidden = re.compile(r"\b(?:ghcr|quay|gcr|registry|pypi|npmjs|debian|hub\.docker|docker)\.(?:io|org|com)\b")
    for place in (".github", "deploy", "examples"):
        for path in (ROOT / place).rglob("*"):
            if path.is_file() and path.suffix not in {".svg", ".png"}:
                assert not forbidden.search(path.read_text()), path
    for name in (".pre-commit-config.yaml", ".editorconfig", "CODE_OF_CONDUCT.md", "pyproject.toml"):
        assert not forbidden.search((ROOT / name).read_text()), name
