"""Lists the components of the packages as a CycloneDX document: the pinned Python requirements, and the npm packages
that the web UI is built from. `make packages` writes it beside the wheel, and the Dockerfile into the image."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = ROOT / "requirements" / "runtime.txt"
REQUIREMENT = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2):
        print("usage: python -m tools.bill_of_materials FILE [REQUIREMENTS]", file=sys.stderr)
        return 2
    target, *requirements = map(Path, arguments)
    target.write_text(json.dumps(document(*requirements), indent=2) + "\n")
    return 0


def document(requirements: Path = RUNTIME) -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    subject = _component("application", project["name"], project["version"], "pypi")
    subject["licenses"] = [{"expression": project["license"]}]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": [*python_components(requirements), *ui_components()],
    }


def python_components(requirements: Path) -> list[dict[str, Any]]:
    """Each pin of the requirements, with the hashes of all its files as properties."""
    found: list[dict[str, Any]] = []
    for line in requirements.read_text().splitlines():
        if pin := REQUIREMENT.match(line):
            found.append(_component("library", pin[1], pin[2], "pypi") | {"properties": []})
        if digest := HASH.search(line):
            found[-1]["properties"].append({"name": "foliot:sha256-of-a-file", "value": digest[1]})
    return found


def ui_components() -> list[dict[str, Any]]:
    """The packages of ui/package-lock.json that are not only for tests and types."""
    lock = json.loads((ROOT / "ui" / "package-lock.json").read_text())
    return [
        _component("library", path.rpartition("node_modules/")[2], package["version"], "npm")
        for path, package in lock["packages"].items()
        if path and "version" in package and not package.get("dev") and not package.get("devOptional")
    ]


def _component(kind: str, name: str, version: str, where: str) -> dict[str, Any]:
    address = f"pkg:{where}/{name.replace('@', '%40')}@{version}"
    return {"type": kind, "name": name, "version": version, "purl": address, "bom-ref": address}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
