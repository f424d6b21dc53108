"""A real OpenSearch, put together from the jars of Maven Central. It has no plugins, so it has no policies."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import tempfile
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.ports import free_port
from tests.support.waiting import until

VERSION = "2.19.1"
# Kept between test runs: the download takes a minute.
DIRECTORY = Path(tempfile.gettempdir()) / f"foliot-tests-opensearch-{VERSION}"
DOWNLOAD_SECONDS = 600
ARTIFACTS = {
    "org.opensearch:opensearch": VERSION,
    "org.opensearch:opensearch-plugin-classloader": VERSION,
    "org.opensearch.plugin:transport-netty4-client": VERSION,
    "org.apache.logging.log4j:log4j-core": "2.21.0",
}
PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>tests</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>"""
DEPENDENCY = "<dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></dependency>"
NETWORK_MODULE = f"""description=HTTP
version={VERSION}
opensearch.version={VERSION}
name=transport-netty4
classname=org.opensearch.transport.Netty4Plugin
java.version=11
has.native.controller=false
"""
PERMISSIONS = """grant {
  permission java.net.SocketPermission "*", "accept,connect,listen,resolve";
  permission java.lang.RuntimePermission "getClassLoader";
  permission java.lang.RuntimePermission "setContextClassLoader";
};
"""
LOGGING = """status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


class OpenSearch:
    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.AsyncClient(base_url=url, timeout=30, trust_env=False)

    async def ask(self, path: str) -> Any:
        answer = await self._client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def is_up(self) -> bool:
        try:
            return (await self._client.get("/_cluster/health")).status_code == 200
        except httpx.TransportError:
            return False

    async def find(self, pattern: str, query: str) -> list[dict[str, Any]]:
        """The documents that a query in Lucene's syntax finds."""
        await self._client.post(f"/{pattern}/_refresh")
        answer = await self._client.get(f"/{pattern}/_search", params={"q": query, "size": 100})
        return [hit["_source"] for hit in answer.json()["hits"]["hits"]]

    async def close(self) -> None:
        await self._client.aclose()


@asynccontextmanager
async def opensearch_server() -> AsyncIterator[OpenSearch]:
    jars = await asyncio.to_thread(_downloaded)
    home = Path(tempfile.mkdtemp(prefix="foliot-opensearch-"))
    port = free_port()
    _install(home, jars, port)
    as_nobody = []
    if os.geteuid() == 0:  # which OpenSearch refuses
        subprocess.run(["/bin/chown", "--recursive", "nobody", home], check=True)
        as_nobody = ["setpriv", "--reuid=nobody", "--clear-groups"]
    process = await asyncio.create_subprocess_exec(
        *as_nobody, "java", "-Xms256m", "-Xmx256m", "-Djava.security.manager=allow", f"-Djava.io.tmpdir={home}",
        f"-Dopensearch.path.home={home}", f"-Dopensearch.path.conf={home}/config", "-Dopensearch.distribution.type=tar",
        "-cp", f"{home}/lib/*", "org.opensearch.bootstrap.OpenSearch", cwd=home, stdout=DEVNULL, stderr=DEVNULL,
    )  # fmt: skip
    server = OpenSearch(f"http://127.0.0.1:{port}")

    async def is_up() -> bool:
        assert process.returncode is None, "OpenSearch has ended"
        return await server.is_up()

    try:
        await until(is_up, seconds=180)
        yield server
    finally:
        await server.close()
        if process.returncode is None:
            process.kill()
        await process.wait()
        await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)


def _install(home: Path, jars: Path, port: int) -> None:
    module = home / "modules" / "transport-netty4"
    for directory in (module, home / "config", home / "plugins", home / "lib"):
        directory.mkdir(parents=True)
    for jar in jars.glob("*.jar"):
        shutil.copy(jar, module if jar.name.startswith(("netty-", "transport-netty4")) else home / "lib")
    (module / "plugin-descriptor.properties").write_text(NETWORK_MODULE)
    (module / "plugin-security.policy").write_text(PERMISSIONS)
    (home / "config" / "log4j2.properties").write_text(LOGGING)
    (home / "config" / "opensearch.yml").write_text(
        f"discovery.type: single-node\nnetwork.host: 127.0.0.1\nhttp.port: {port}\ntransport.port: {free_port()}\n"
        "cluster.routing.allocation.disk.threshold_enabled: false\n"
    )


def _downloaded() -> Path:
    """The directory of the jars. Downloads them if that has not been done before."""
    if (missing := [program for program in ("java", "mvn") if shutil.which(program) is None]) != []:
        pytest.skip(f"needs {' and '.join(missing)}: install the Debian packages default-jre-headless and maven")
    DIRECTORY.mkdir(exist_ok=True)
    jars = DIRECTORY / "jars"
    with (DIRECTORY / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.exists():
            partial = DIRECTORY / "partial"
            shutil.rmtree(partial, ignore_errors=True)
            dependencies = [DEPENDENCY.format(*name.split(":"), version) for name, version in ARTIFACTS.items()]
            (DIRECTORY / "pom.xml").write_text(PROJECT.format(dependencies="".join(dependencies)))
            command = ["mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
            done = subprocess.run(command, cwd=DIRECTORY, capture_output=True, timeout=DOWNLOAD_SECONDS, check=False)
            if done.returncode != 0:
                pytest.skip("OpenSearch can't be downloaded: Maven Central does not answer")
            partial.rename(jars)
    return jars
