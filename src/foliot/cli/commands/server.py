"""`foliot server`."""

from __future__ import annotations

import socket

import click

from foliot import config
from foliot.assembly import run_server
from foliot.cli.api_socket import listen, plain_http_option
from foliot.cli.process import run, supervised_option


@click.command()
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.  [default: 8000]")
@click.option("--data", help="Data directory of a running `foliot up`, whose PostgreSQL to use.")
@plain_http_option
@click.option("--listen-fd", type=int, hidden=True, help="File descriptor of a bound socket.")
@click.option("--open", "is_open", is_flag=True, hidden=True, help="Require no token on the loopback interface.")
@supervised_option
def command(
    host: str | None,
    port: int | None,
    data: str | None,
    plain_http: bool | None,
    listen_fd: int | None,
    is_open: bool,
    supervised: bool,
) -> None:
    """Run the HTTP API. Every request needs a token.

    Create the first token directly in the database: foliot token create NAME --role admin --everywhere --database
    """
    given = {"host": host, "port": port, "data": data, "plain_http_allowed": plain_http}
    loaded, sources = config.load(given), config.sources_of(given)
    listening = socket.socket(fileno=listen_fd) if listen_fd is not None else listen(loaded)
    run(
        lambda stop: run_server(loaded, stop, listening=listening, is_open=is_open, sources=sources),
        is_supervised=supervised,
    )
