"""`foliot up`."""

from __future__ import annotations

import click

from foliot import config
from foliot.cli.api_socket import listen, plain_http_option
from foliot.cli.process import run
from foliot.sdk.app import load_app
from foliot.up import run_up


@click.command()
@click.option("--host", help="Address the API listens on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port the API listens on; 0 picks a free one.  [default: 8000]")
@click.option("--data", help="Data directory of the embedded PostgreSQL.  [default: ~/.local/share/foliot]")
@click.option("--workers", type=int, help="Number of worker processes.  [default: 2]")
@plain_http_option
@click.option("--app", metavar="MODULE:APP", help="A foliot.App whose tasks the workers execute.")
def command(
    host: str | None, port: int | None, data: str | None, workers: int | None, plain_http: bool | None, app: str | None
) -> None:
    """Run everything on this machine: PostgreSQL, the API, a scheduler and workers.

    On the loopback interface, requests need no token; on any other address, they do. Ctrl-C finishes running jobs and
    stops; a second Ctrl-C stops at once. All data stays in the data directory and is there again at the next start.
    """
    loaded = config.load(
        {"host": host, "port": port, "data": data, "workers": workers, "plain_http_allowed": plain_http}
    )
    if app:
        load_app(app)  # Fail here, not in every worker.
    listening = listen(loaded)
    run(lambda stop: run_up(loaded, stop, listening=listening, app=app))
