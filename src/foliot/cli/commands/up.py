"""`foliot up`."""

from __future__ import annotations

import asyncio
import ipaddress
from pathlib import Path

import click
import msgspec

from foliot import config
from foliot.cli.api_socket import is_loopback, listen, plain_http_option
from foliot.cli.commands.worker import queues_of
from foliot.cli.process import run
from foliot.errors import ConfigurationError
from foliot.sdk.app import App
from foliot.sdk.app_loading import load_app
from foliot.sdk.http_protocol import DEFAULT_URL
from foliot.up.run import run_up

DEMO_APP = "foliot.demo.tasks:app"


@click.command()
@click.option("--host", help="Address the API listens on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port the API listens on; 0 picks a free one.  [default: 8000]")
@click.option("--data", help="Data directory of the embedded PostgreSQL.  [default: ~/.local/share/foliot]")
@click.option(
    "--workers",
    metavar="NUMBER|LEAST:MOST",
    help="Number of worker processes. With a range such as 2:8, it follows the load.  [default: 2]",
)
@plain_http_option
@click.option("--app", metavar="MODULE:APP", help="A foliot.App whose tasks the workers execute.")
@click.option("--demo", is_flag=True, help="Show a small shop at work, in a data directory of its own: DIRECTORY-demo.")
def command(
    host: str | None,
    port: int | None,
    data: str | None,
    workers: str | None,
    plain_http: bool | None,
    app: str | None,
    demo: bool,
) -> None:
    """Run everything on this machine: PostgreSQL, the API, a scheduler and workers.

    On the loopback interface, requests need no token; on any other address, they do. Ctrl-C finishes running jobs and
    stops; a second Ctrl-C stops at once. All data stays in the data directory and is there again at the next start.

    With --demo, a made-up shop runs in an installation of its own, to look around in: recurring jobs, failures,
    workflows, an approval, limits and a paused queue. Delete its directory to start again.
    """
    given = {"host": host, "port": port, "data": data, "workers": workers, "plain_http_allowed": plain_http}
    loaded, sources = config.load(given), config.sources_of(given)
    if demo:
        loaded, app = for_the_demo(loaded, app), DEMO_APP
    # An app that can't be imported fails here, not in every worker.
    queues = queues_of(load_app(app) if app else App(), loaded.slots)
    listening = listen(loaded)

    async def welcome(url: str) -> None:
        if demo:
            from foliot.demo.opening import open_shop

            await asyncio.to_thread(open_shop, url)
        click.echo(welcome_text(url, loaded, is_open=ipaddress.ip_address(listening.getsockname()[0]).is_loopback))

    run(
        lambda stop: run_up(
            loaded, stop, listening=listening, app=app, queues=queues, sources=sources, on_ready=welcome
        )
    )


def for_the_demo(loaded: config.Config, app: str | None) -> config.Config:
    """The settings of the demo: another directory, so that it mixes with nobody's jobs, and a few slots and days."""
    if app:
        raise click.UsageError("--demo brings tasks of its own; leave out --app.")
    if loaded.database_url:
        raise ConfigurationError("--demo uses a PostgreSQL of its own, beside your data; unset FOLIOT_DATABASE_URL")
    if loaded.host != "localhost" and not is_loopback(loaded.host):
        raise ConfigurationError(
            "--demo needs no tokens, so it listens on the loopback interface only; leave out --host"
        )
    return msgspec.structs.replace(loaded, data=f"{loaded.data.rstrip('/')}-demo", slots=6, retention_days=7)


def welcome_text(url: str, loaded: config.Config, *, is_open: bool) -> str:
    """Where everything is and what to try, in a few lines."""
    lines = [
        ("UI", click.style(f"{url}/ui/", fg="cyan")),
        ("API", f"{click.style(url, fg='cyan')}  {f'docs: {url}/docs' if is_open else 'set FOLIOT_TOKEN to a token'}"),
        ("data", "in the database of FOLIOT_DATABASE_URL" if loaded.database_url else str(Path(loaded.data).resolve())),
        ("try", "foliot submit --command 'echo hello' --wait"),
        ("", "foliot submit --command date --name clock --every 1m"),
        ("", "foliot runs --watch"),
    ]
    if url != DEFAULT_URL:
        lines.insert(3, ("first", f"export FOLIOT_URL={url}"))
    rows = "\n".join(f"  {click.style(f'{name:<7}', dim=True)}{text}" for name, text in lines)
    return f"\n{click.style('Foliot is ready.', fg='green', bold=True)} Ctrl-C stops it.\n{rows}\n"
