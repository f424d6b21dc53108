"""`foliot events`."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from foliot.cli.columns import cropped, short_ids, terminal_columns, width
from foliot.cli.commands.runs import problem_of
from foliot.cli.local_times import locate_range
from foliot.cli.short_ids import full_id
from foliot.cli.tables import clean, to_second, word
from foliot.sdk.operations import Operations, RunEvent


@click.command()
@click.argument("run_id", metavar="[RUN_ID]", required=False)
@click.option("--follow", "-f", is_flag=True, help="Follow new events until Ctrl-C; for a single run, until it ends.")
@click.option(
    "--state",
    metavar="WORD",
    help="Only events with this status, such as failed or running; separate several with commas.",
)
@click.option("--queue", help="Only runs in this queue.")
@click.option("--task", help="Only runs of this task.")
@click.option("--job", metavar="NAME_OR_ID", help="Only runs of this recurring job.")
@click.option("--tag", help="Only runs with this tag.")
@click.option(
    "--since", metavar="TIME", help="Start at an ISO time, or a duration such as 10m ago.  [default: 5m; with -f: now]"
)
@click.option("--json", "as_json", is_flag=True, help="Print the events of the API as JSON, one per line.")
def command(run_id: str | None, follow: bool, as_json: bool, **filters: str | None) -> None:
    """Show the runs that ended recently, oldest first; or, with -f, follow the events of runs.

    With -f and RUN_ID, follow that run.
    """
    wanted = locate_range({name: value for name, value in filters.items() if value})
    if run_id is not None and (wanted or not follow):
        raise click.UsageError(
            "RUN_ID: give it with -f and without filters; `foliot runs show` shows the run's current status"
        )
    with Operations.from_environment() as client:
        run_id = None if run_id is None else full_id(client, run_id)
        for event in _events(client, run_id, wanted, is_followed=follow):
            click.echo(msgspec.json.encode(event.data) if as_json else line_of(event))


def _events(client: Operations, run_id: str | None, wanted: dict[str, str], *, is_followed: bool) -> Iterator[RunEvent]:
    if run_id is not None:
        return client.follow_run(run_id)
    return client.follow_events(wanted) if is_followed else client.list_events({"since": "5m"} | wanted)


def line_of(event: RunEvent) -> str:
    run = event.data
    status = word(run["status"]).padded(9)
    what = run["task"] if not run["name"] or run["name"] == run["task"] else f"{run['task']} {run['name']}"
    why = problem_of(run["error"]) or run["reason"] or ""
    at, run_id = clean(run["at"]), clean(run["id"])
    rest = f"{clean(run['queue'])}  {clean(what)}  {clean(why)}".rstrip()
    full, room = f"{at}  {status}  {run_id}  {rest}", terminal_columns()
    if room is None or width(click.unstyle(full)) <= room:
        return full
    (short_id,) = short_ids([run_id])
    return cropped(f"{to_second(at)}  {status}  {short_id}  {rest}", room + len(status) - len(click.unstyle(status)))
