"""The Dockerfile keeps the rules that a linter would check. `test_containers.py` builds and runs the image."""

from __future__ import annotations

import re
from fnmatch import fnmatch

from tests.support.processes import ROOT

TEXT = (ROOT / "Dockerfile").read_text()
LINES = [line.strip() for line in re.sub(r"\\\n", " ", TEXT).splitlines() if line.strip() and not line.startswith("#")]


def instructions(name: str) -> list[str]:
    return [line.removeprefix(f"{name} ") for line in LINES if line.startswith(f"{name} ")]


def test_image_is_built_in_stages_from_bases_with_a_version() -> None:
    assert len(instructions("FROM")) == 3
    for argument in instructions("ARG"):
        name, _, value = argument.partition("=")
        assert not name.endswith("IMAGE") or re.search(r":\d", value)


def test_last_stage_runs_as_a_user_by_number_and_checks_its_health() -> None:
    last = TEXT.rpartition("\nFROM ")[2]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert 'ENTRYPOINT ["foliot"]' in last
    for label in ("title", "description", "licenses", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in last


def test_image_installs_only_what_is_pinned() -> None:
    assert "--require-hashes -r requirements/image.txt" in TEXT
    assert "npm ci " in TEXT
    assert not instructions("ADD")
    assert not [line for line in instructions("RUN") if re.search(r"\bsudo\b|curl|wget|npm install", line)]
    installs = re.findall(r"-m pip [^&]*\binstall\b[^&]*", " ".join(instructions("RUN")))
    assert len(installs) == 3
    assert all("--require-hashes" in install or "--no-deps" in install for install in installs)


def test_image_has_the_packages_of_the_runtime_at_the_same_versions_and_those_for_traces() -> None:
    runtime, image, tools, tested = (pins_of(name) for name in ("runtime", "image", "build", "dev"))
    assert {"hatchling", "editables"} <= set(tools)
    assert not {"hatchling", "editables"} & set(image)
    more = set(image) - set(runtime)
    assert {
        "opentelemetry-sdk",
        "opentelemetry-exporter-otlp-proto-http",
        "opentelemetry-exporter-otlp-proto-grpc",
    } <= more
    assert {name: (image | tools)[name] for name in runtime} == runtime
    assert {name: image[name] for name in more} == {name: tested[name] for name in more}


def pins_of(name: str) -> dict[str, str]:
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    return dict(line.split()[0].split("==") for line in lines if re.match(r"[a-z0-9.-]+==", line))


def test_copied_files_exist_and_reach_the_build() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    allowed = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    for copy in instructions("COPY"):
        if not copy.startswith("--from"):
            for source in copy.split()[:-1]:
                path = source.rstrip("/")
                assert (ROOT / path).exists(), path
                assert any(fnmatch(path, part) or path.startswith(f"{part}/") for part in allowed), path
