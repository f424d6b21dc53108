"""A real PgBouncer in transaction mode, in front of the test server."""

from __future__ import annotations

import asyncio
import os
import pwd
import stat
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.support.debian import require
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS

CONFIGURATION = """
[databases]
{database} = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
server_login_retry = 1
logfile = {log}
pidfile =
"""


@asynccontextmanager
async def pgbouncer_to(url: str, directory: Path) -> AsyncIterator[str]:
    """The URL of the same database through PgBouncer."""
    program = require("pgbouncer", "pgbouncer")
    parts = urlsplit(url)
    asked = parse_qs(parts.query)
    port = free_port()
    # PgBouncer refuses to run as root, and the server's socket is for its owner only: a proxy connects the two.
    door = await _open_door(f"{asked['host'][0]}/.s.PGSQL.{asked['port'][0]}")
    settings = CONFIGURATION.format(
        database=parts.path[1:], host="127.0.0.1", port=door.sockets[0].getsockname()[1], user=parts.username,
        listen_port=port, log=directory / "pgbouncer.log",
    )  # fmt: skip
    file = directory / "pgbouncer.ini"
    file.write_text(settings)
    user: list[str] = []
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for path in (directory, file):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        for parent in directory.parents:
            if parent.stat().st_uid == 0 and not parent.stat().st_mode & stat.S_IXOTH:
                # One of pytest's directories, which are closed to other users.
                parent.chmod(0o755)
        user = ["-u", "nobody"]
    process = await asyncio.create_subprocess_exec(
        program, *user, str(file), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        await _answers(port)
        yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}?sslmode=disable"
    finally:
        door.close()
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _open_door(socket_path: str) -> asyncio.Server:
    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(1 << 16):
                writer.write(chunk)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(socket_path)
        except OSError:
            # The server is down: PgBouncer reports an error, and retries.
            writer.close()
            return
        await asyncio.gather(pump(reader, back), pump(there, writer))

    return await asyncio.start_server(serve, "127.0.0.1", 0)


async def _answers(port: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return
