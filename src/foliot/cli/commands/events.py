"""`foliot events`: what happens to runs."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from foliot.cli.commands.runs import problem_of
from foliot.cli.tables import clean, word
from foliot.sdk.operations import Operations, RunEvent


@click.command()
@click.argument("run_id", metavar="[RUN_ID]", required=False)
@click.option(
    "--follow", "-f", is_flag=True, help="Go on with what happens, until Ctrl-C; of a run, until it has ended."
)
@click.option("--state", metavar="WORD", help="Such as failed or running; several with commas.")
@click.option("--queue", help="Of this queue.")
@click.option("--task", help="Of this task.")
@click.option("--job", metavar="NAME_OR_ID", help="Of this recurring job.")
@click.option("--tag", help="With this tag.")
@click.option("--since", metavar="TIME", help="An ISO time, or a duration such as 10m.  [default: 5m; with -f: now]")
@click.option("--json", "as_json", is_flag=True, help="Print the API's own JSON, one event a line.")
def command(run_id: str | None, follow: bool, as_json: bool, **filters: str | None) -> None:
    """Show what has ended lately, in that order; or, with -f, what happens to all runs, to some, or to one."""
    asked = {name: value for name, value in filters.items() if value}
    if run_id is not None and (asked or not follow):
        raise click.UsageError("RUN_ID: stands alone, with -f; how it is now, `foliot runs show` says")
    with Operations.from_environment() as client:
        for event in _events(client, run_id, asked, is_followed=follow):
            click.echo(msgspec.json.encode(event.data) if as_json else line_of(event))


def _events(client: Operations, run_id: str | None, asked: dict[str, str], *, is_followed: bool) -> Iterator[RunEvent]:
    if run_id is not None:
        return client.follow_run(run_id)
    return client.follow_events(asked) if is_followed else client.list_events({"since": "5m"} | asked)


def line_of(event: RunEvent) -> str:
    run = event.data
    status = word(run["status"]).padded(9)
    what = run["task"] if not run["name"] or run["name"] == run["task"] else f"{run['task']} {run['name']}"
    why = problem_of(run["error"]) or run["reason"] or ""
    return (
        f"{clean(run['at'])}  {status}  {clean(run['id'])}  {clean(run['queue'])}  {clean(what)}  {clean(why)}".rstrip()
    )
