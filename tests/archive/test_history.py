"""`foliot history` lists, queries and exports what is in the archive."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet

from foliot.cli.commands.history import command
from foliot.config import Config
from foliot.errors import ConfigurationError, Invalid
from foliot.store.store import Store
from tests.support.archive import DAY_SECONDS, archiver_of, catch_up, fill
from tests.support.fake_clock import FakeClock


class Terminal:
    def __init__(self, config: Config, clock: FakeClock) -> None:
        self._environment = {"FOLIOT_ARCHIVE_URL": config.archive_url}
        self.today = clock.now().date()
        self._range = ["--since", str(self.today - timedelta(days=10)), "--until", str(self.today)]

    def history(self, *words: str) -> Result:
        ended = CliRunner().invoke(command, [*words, *self._range], env=self._environment)
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return ended

    def rows(self, sql: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.history("query", sql, "--json").stdout.splitlines()]


@pytest.fixture(params=["parquet", "jsonl"])
async def terminal(
    request: pytest.FixtureRequest, store: Store, config: Config, fake_clock: FakeClock
) -> tuple[Terminal, set[str]]:
    """An archive with two complete days."""
    config = msgspec.structs.replace(config, archive_format=request.param)
    ids = await fill(store, fake_clock)
    await fake_clock.advance(DAY_SECONDS)
    await catch_up(archiver_of(store, config))
    return Terminal(config, fake_clock), ids


async def test_the_archive_is_listed_queried_and_exported(terminal: tuple[Terminal, set[str]], tmp_path: Path) -> None:
    shell, ids = terminal
    listed = json.loads(shell.history("days", "--json").stdout)["items"]
    assert sum(day["rows"] or 0 for day in listed if day["kind"] == "runs") == len(ids)
    assert "RUNS" not in shell.history("days").stdout
    assert {row["id"] for row in shell.rows("select id from runs")} == ids
    counted = shell.rows("select namespace, task, state, count(*) as number from runs group by all order by number")
    assert {(row["namespace"], row["state"], row["number"]) for row in counted} == {
        ("default", "succeeded", len(ids) // 2),
        ("shop", "failed", len(ids) // 2),
    }
    (payload,) = shell.rows("select distinct payload ->> 'n' as n from runs where payload is not null")
    assert payload == {"n": "1"}
    (output,) = shell.rows("select output from runs where output like 'line 0%' limit 1")
    assert str(output["output"]).startswith("line 0\nünd more")
    table = shell.history("query", "select state, count(*) as runs from runs group by all order by all").stdout
    assert table.split() == ["STATE", "RUNS", "failed", str(len(ids) // 2), "succeeded", str(len(ids) // 2)]
    comma = shell.history("query", "select state from runs", "--csv").stdout
    assert len(list(csv.DictReader(io.StringIO(comma)))) == len(ids)

    for name in ("all.parquet", "all.csv", "all.jsonl"):
        assert f"{len(ids)} rows were written" in shell.history("export", "runs", str(tmp_path / name)).stderr
    assert parquet.read_table(tmp_path / "all.parquet").num_rows == len(ids)
    assert {json.loads(line)["id"] for line in (tmp_path / "all.jsonl").read_text().splitlines()} == ids
    failed = str(tmp_path / "failed.csv")
    shell.history("export", "runs", failed, "--where", "state = 'failed'")
    assert len(list(csv.DictReader(io.StringIO(Path(failed).read_text())))) == len(ids) // 2


async def test_a_query_that_is_wrong_or_reaches_out_is_refused(
    terminal: tuple[Terminal, set[str]], tmp_path: Path
) -> None:
    shell, _ = terminal
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    for sql in (
        "select nothing from runs",
        "selec",
        f"select * from read_csv('{secret}')",
        f"copy (select 1) to '{tmp_path / 'out.csv'}'",
        "set enable_external_access = true",
    ):
        with pytest.raises(Invalid, match="the query failed"):
            shell.history("query", sql)
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(Invalid, match="ending must be one of"):
        shell.history("export", "runs", str(tmp_path / "all.xlsx"))
    assert "use --limit" in shell.history("query", "select * from runs", "--limit", "2").stderr


def test_days_and_settings_that_are_wrong_are_refused(config: Config, fake_clock: FakeClock) -> None:
    shell = Terminal(config, fake_clock)
    assert "has no day" in shell.history("days").stdout
    assert shell.history("query", "select count(*) as number from ticks").stdout.split() == ["NUMBER", "0"]
    for words, complaint in ((["--since", "yesterday"], "is not a day"), (["--since", "9999-01-01"], "is after")):
        ended = CliRunner().invoke(command, ["days", *words], env={"FOLIOT_ARCHIVE_URL": config.archive_url})
        assert isinstance(ended.exception, Invalid)
        assert complaint in str(ended.exception)
    assert isinstance(CliRunner().invoke(command, ["days"]).exception, ConfigurationError)
