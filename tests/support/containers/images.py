"""The images: a base of Debian's packages, Foliot's from the Dockerfile, and one with the services of the lab."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.containers.podman import DIRECTORY, NAME, Podman
from tests.support.kept import one_at_a_time
from tests.support.processes import ROOT

BASE = "localhost/foliot-tests-base"
PYTHON = "localhost/foliot-tests-python"
NODE = "localhost/foliot-tests-node"
SERVICES = "localhost/foliot-tests-services"
FOLIOT = "localhost/foliot:tests"
REVISION = "0123456789abcdef"
PACKAGES = "python3-venv,ca-certificates"
SERVED = "postgresql redis-server nginx-light curl"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
BUILD = ("build", "--quiet", "--format=docker", "--isolation=chroot", "--network=host")
# Stands in for `postgres:16`, whose entry point takes the same variables.
POSTGRES_START = """#!/bin/sh
set -e
bin=$(echo /usr/lib/postgresql/*/bin) data=/var/lib/postgresql/data
install -d -o postgres -g postgres -m 0700 "$data"
install -d -o postgres -g postgres /run/postgresql
if [ ! -e "$data/PG_VERSION" ]; then
  install -o postgres -m 0400 "$POSTGRES_PASSWORD_FILE" /tmp/password
  setpriv --reuid postgres --regid postgres --clear-groups \\
    "$bin/initdb" -D "$data" -U "$POSTGRES_USER" --pwfile /tmp/password --auth-host scram-sha-256 --no-sync
  echo "host all all all scram-sha-256" >> "$data/pg_hba.conf"
  echo "create database $POSTGRES_DB" |
    setpriv --reuid postgres --regid postgres --clear-groups "$bin/postgres" --single -D "$data" postgres
fi
exec setpriv --reuid postgres --regid postgres --clear-groups "$bin/postgres" -D "$data" -c listen_addresses='*'
"""


async def foliot_image(podman: Podman) -> str:
    """Builds the image from this checkout; a second build of the same sources takes a second."""
    with one_at_a_time(NAME):
        await bases(podman)
        arguments = {"PYTHON_IMAGE": PYTHON, "NODE_IMAGE": NODE, "REVISION": REVISION}
        given = [f"--build-arg={name}={value}" for name, value in arguments.items()]
        await podman.run(*BUILD, f"--tag={FOLIOT}", *given, str(ROOT))
    return FOLIOT


async def services_image(podman: Podman) -> str:
    """PostgreSQL, Redis and nginx, which the lab has as images of their projects."""
    with one_at_a_time(NAME):
        await bases(podman)
        await build(
            podman, SERVICES, PYTHON,
            f"RUN apt-get -qq update && apt-get -qq install --no-install-recommends {SERVED}",
            "COPY start-postgres /usr/local/bin/",
            "RUN chmod 0755 /usr/local/bin/start-postgres && ln -s /usr/lib/postgresql/*/bin/pg_isready /usr/local/bin",
            files={"start-postgres": POSTGRES_START},
        )  # fmt: skip
    return SERVICES


async def bases(podman: Podman) -> None:
    """Makes the two base images that the Dockerfile expects: Python with venv, and Node.js with npm."""
    if (await podman.attempt("image", "exists", BASE)).code != 0:
        await podman.run("import", str(await asyncio.to_thread(root_file_system)), BASE)
    # Behind a proxy that ends TLS, this machine trusts more authorities than a fresh Debian.
    await build(
        podman, PYTHON, BASE,
        f"COPY authorities {CERTIFICATES}",
        "COPY pip.conf /etc/",
        files={"authorities": CERTIFICATES, "pip.conf": f"[global]\ncert = {CERTIFICATES}\n"},
    )  # fmt: skip
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are missing: the image contains the web UI")
    await build(
        podman, NODE, PYTHON,
        "COPY node /usr/local/bin/",
        "COPY npm /usr/local/lib/node_modules/npm",
        "COPY npmrc /usr/local/etc/",
        "RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm",
        files={
            "node": Path(node).resolve(),
            "npm": Path(npm).resolve().parent.parent,
            "npmrc": f"cafile={CERTIFICATES}\n",
        },
    )  # fmt: skip


async def build(podman: Podman, tag: str, base: str, *lines: str, files: dict[str, str | Path]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for name, content in files.items():
            target = Path(directory) / name
            if isinstance(content, str):
                target.write_text(content)
            elif content.is_dir():
                shutil.copytree(content, target, symlinks=True)
            else:
                shutil.copy2(content, target)
        (Path(directory) / "Containerfile").write_text("\n".join([f"FROM {base}", *lines]) + "\n")
        await podman.run(*BUILD, f"--tag={tag}", directory)


def root_file_system() -> Path:
    """The smallest Debian of this machine's release that has Python, as an archive."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    archive = DIRECTORY / f"{release}.tar"
    if not archive.exists():
        part = archive.with_suffix(".part.tar")
        made = subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", release, str(part)],
            capture_output=True, text=True, check=False, env=os.environ | {"TMPDIR": str(DIRECTORY)},
        )  # fmt: skip
        if made.returncode != 0:
            pytest.skip(f"Debian's packages can't be had: {made.stderr.strip().splitlines()[-1]}")
        part.replace(archive)
    return archive
