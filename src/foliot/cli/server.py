"""`foliot server`."""

from __future__ import annotations

import socket

import click

from foliot import config
from foliot.assembly import run_server
from foliot.cli.listening import listen
from foliot.cli.process import run, supervised_option


@click.command()
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port to listen on; 0: any free one.  [default: 8000]")
@click.option("--data", help="Directory of an embedded PostgreSQL that `foliot up` runs.")
@click.option("--listen-fd", type=int, hidden=True, help="A socket that is bound already.")
@supervised_option
def command(host: str | None, port: int | None, data: str | None, listen_fd: int | None, supervised: bool) -> None:
    """Run the HTTP API."""
    loaded = config.load({"host": host, "port": port, "data": data})
    listening = socket.socket(fileno=listen_fd) if listen_fd is not None else listen(loaded.host, loaded.port)
    run(lambda stop: run_server(loaded, stop, listening=listening), is_supervised=supervised)
