"""Importing a crontab line by line: the resulting jobs, and the messages about lines that become none."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from foliot.cli import local_times
from foliot.cli.imports.crontab_file import parse_crontab
from foliot.cli.imports.imported_jobs import Imported
from foliot.cli.local_times import local_zone
from tests.support.terminal import Shell

REAL = r"""
# Edit this file to introduce tasks to be run by cron.
# m h  dom mon dow   command
SHELL=/bin/bash
PATH = "/usr/local/bin:/usr/bin:/bin"
MAILTO=ops@example.com
FOO='a b'

# Nightly backup
30 2 * * *  /opt/backup/run.sh --full >> /var/log/backup.log 2>&1

# 0 5 * * 1 tar -zcf /var/backups/home.tgz /home/
@reboot /usr/bin/start-something
@daily  find /tmp -mtime +7 -delete

CRON_TZ=Europe/Berlin
*/15 8-18 * * MON-FRI  mail -s "report 100\% done" boss%Dear boss,%all is well.
0 0 31 2 * never
5 25 * * * wrong hour
just some words
MAILTO=""
0~30 4 * * 7 cd /srv/app && python3 manage.py clearsessions
"""


def parsed(text: str, *, has_users: bool = False) -> Imported:
    return parse_crontab(text, zone="UTC", has_users=has_users)


def only(text: str, *, has_users: bool = False) -> dict[str, Any]:
    """The only job of a crontab without errors."""
    found = parsed(text, has_users=has_users)
    assert not found.left_out
    (entry,) = found.entries
    return dict(entry.fields)


def test_a_real_crontab_is_imported() -> None:
    found = parsed(REAL)
    assert [
        (entry.line, entry.fields["name"], entry.fields["cron"], entry.fields["timezone"]) for entry in found.entries
    ] == [
        (10, "Nightly backup", "30 2 * * *", "UTC"),
        (14, "find-tmp", "0 0 * * *", "UTC"),
        (17, "mail-report-done", "*/15 8-18 * * MON-FRI", "Europe/Berlin"),
        (18, "never", "0 0 31 2 *", "Europe/Berlin"),
        (22, "manage-clearsessions", "H(0-30) 4 * * 7", "Europe/Berlin"),
    ]
    assert [(note.line, note.text.partition(":")[0]) for note in found.left_out] == [
        (13, "@reboot"), (19, "hour"), (20, "not a variable and not an entry of five fields and a command"),
    ]  # fmt: skip
    assert [(note.line, note.text.partition(":")[0]) for note in found.notes] == [(6, "MAILTO"), (22, "0~30")]


def test_the_semantics_of_cron_are_kept() -> None:
    job = only("SHELL=/bin/bash\nPATH=/opt/bin\nHOME=/srv\n0 1 * * * run\n")
    assert job["payload"] == {
        "argv": ["/bin/bash", "-c", "run"],
        "cwd": "/srv",
        "environment": {"PATH": "/opt/bin", "HOME": "/srv"},
    }
    assert (job["overlap"], job["catchup"], job["retries"], job["timeout_seconds"]) == (
        "allow_all",
        "none",
        0,
        31_536_000,
    )


@pytest.mark.parametrize(
    ("command", "run", "stdin"),
    [
        ("cat", "cat", None),
        ("cat%one%two", "cat", "one\ntwo\n"),
        (r"date +\%F", "date +%F", None),
        (r"cat%100\%%", "cat", "100%\n\n"),
        ("cat%", "cat", "\n"),
    ],
)
def test_an_unescaped_percent_sign_ends_the_command(command: str, run: str, stdin: str | None) -> None:
    payload = only(f"* * * * * {command}")["payload"]
    assert (payload["command"], payload.get("stdin")) == (run, stdin)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("A = b c ", "b c"),
        ('A="b c"', "b c"),
        ("A='b'", "b"),
        ('"A"="b"', "b"),
        ("A=", ""),
        ('A="', '"'),
        ("A=b=c", "b=c"),
    ],
)
def test_variables_are_parsed_like_in_cron(line: str, value: str) -> None:
    assert only(f"{line}\n* * * * * x")["payload"]["environment"] == {"A": value}


def test_a_variable_applies_from_its_line_on() -> None:
    found = parsed("0 1 * * * before\nCRON_TZ=Asia/Tokyo\nRANDOM_DELAY=5\nA=1\n0 1 * * * after\n")
    before, after = (entry.fields for entry in found.entries)
    assert (before["timezone"], "jitter_seconds" in before, "environment" in before["payload"]) == ("UTC", False, False)
    assert (after["timezone"], after["jitter_seconds"], after["payload"]["environment"]) == (
        "Asia/Tokyo",
        300,
        {"A": "1"},
    )


def test_an_unknown_zone_and_the_user_are_reported() -> None:
    found = parsed("CRON_TZ=Mars/Olympus\nLOGNAME=joe\n0 1 * * * x\n")
    assert [note.line for note in found.notes] == [1, 2]
    assert found.entries[0].fields["timezone"] == "UTC"


def test_a_system_crontab_has_a_user_column() -> None:
    found = parsed(
        "17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly\n@daily www-data /usr/bin/tidy\n",
        has_users=True,
    )
    first, second = (entry.fields for entry in found.entries)
    assert (first["name"], first["payload"]) == (
        "run-parts-cron.hourly",
        {"command": "cd / && run-parts --report /etc/cron.hourly"},
    )
    assert (second["name"], second["payload"]) == ("tidy", {"command": "/usr/bin/tidy"})
    assert [note.text.partition(":")[0] for note in found.notes] == ["user root", "user www-data"]
    assert "leave out --system" in parsed("0 1 * * * lonely\n", has_users=True).left_out[0].text


@pytest.mark.parametrize(
    ("comments", "name"),
    [
        ("# Clean up", "Clean up"),
        ("### --- Clean up: ---", "Clean up"),
        ("#", "opt-run"),
        ("# m h dom mon dow command", "opt-run"),
        ("# 0 5 * * 1 old.sh", "opt-run"),
        ("# PATH=/bin", "opt-run"),
        ("# " + "long " * 20, "opt-run"),
        ("# in/out", "in-out"),
        ("# first\n# second", "first"),
        ("# far away\n", "opt-run"),
        ("# 3 copies a day", "3 copies a day"),
    ],
)
def test_a_comment_above_becomes_the_name_if_possible(comments: str, name: str) -> None:
    assert only(f"{comments}\n0 1 * * * /opt/run.sh --now")["name"] == name


def test_comments_become_descriptions_and_names_are_unique() -> None:
    found = parsed("# one\n# and more\n0 1 * * * x\n# one\n0 2 * * * x\n")
    assert [(entry.fields["name"], entry.fields["metadata"]["description"]) for entry in found.entries] == [
        ("one", "one\nand more"),
        ("one-2", "one"),
    ]


@pytest.mark.parametrize("word", ["@yearly", "@Hourly", "@every_minute", "@midnight"])
def test_named_schedules_are_known(word: str) -> None:
    assert len(only(f"{word}\tx")["cron"].split()) == 5


def test_jobs_use_the_time_zone_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(local_times, "LOCAL_TIME", tmp_path / "localtime")
    monkeypatch.setattr(local_times, "ZONE_NAME", tmp_path / "timezone")
    assert local_zone() == "UTC"
    (tmp_path / "timezone").write_text("Europe/Paris\n")
    assert local_zone() == "Europe/Paris"
    (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    assert local_zone() == "Asia/Tokyo"
    monkeypatch.setenv("TZ", ":America/New_York")
    assert local_zone() == "America/New_York"


@pytest.mark.process
class TestTheCommand:
    @pytest.fixture
    def crontab(self, tmp_path: Path) -> Path:
        path = tmp_path / "crontab"
        path.write_text(REAL)
        return path

    def test_a_dry_run_shows_jobs_an_import_creates_them_and_a_second_changes_nothing(
        self, shell: Shell, crontab: Path
    ) -> None:
        shown = shell.foliot("import-crontab", str(crontab), "--timezone", "Europe/Vienna")
        assert (shown.code, shown.out.count("create ")) == (1, 4)
        assert "30 2 * * * Europe/Vienna: " in shown.out
        assert shown.out.endswith("4 create; dry run: nothing was changed\n")
        # The fourth error shows only when its fire times are computed.
        assert [line.split(": ")[0] for line in shown.err.splitlines()] == ["note"] * 2 + ["left out"] * 4
        assert f"{crontab}:13: @reboot: a cluster has no such moment" in shown.err
        assert "Nightly backup" not in shell.done("jobs")

        made = shell.foliot("import-crontab", str(crontab), "--timezone", "Europe/Vienna", "--apply")
        assert (made.code, made.out.splitlines()[-1]) == (1, "4 create")
        job = json.loads(shell.done("jobs", "show", "Nightly backup", "--json"))
        assert job["schedule"] == {
            "cron": "30 2 * * *",
            "timezone": "Europe/Vienna",
            "overlap": "allow_all",
            "catchup": "none",
        }
        assert job["metadata"] == {"description": "Nightly backup", "applied_by": f"crontab {crontab}"}
        assert job["payload"]["argv"][:2] == ["/bin/bash", "-c"]

        again = shell.foliot("import-crontab", str(crontab), "--timezone", "Europe/Vienna", "--apply", "--json")
        document = json.loads(again.out)
        assert {item["action"] for item in document["items"]} == {"unchanged"}
        assert (document["dry_run"], len(document["left_out"]), document["left_out"][0]["line"]) == (False, 4, 13)
        assert json.loads(shell.done("jobs", "show", "Nightly backup", "--json"))["version"] == job["version"]

        crontab.write_text(REAL.replace("30 2", "45 3"))
        changed = shell.foliot("import-crontab", str(crontab), "--timezone", "Europe/Vienna", "--apply")
        assert "cron: 30 2 * * * -> 45 3 * * *" in changed.out

    def test_a_job_of_that_name_from_another_source_is_left_alone(self, shell: Shell, tmp_path: Path) -> None:
        shell.done("submit", "--command", "true", "--cron", "0 1 * * *", "--name", "taken by hand")
        ended = shell.foliot("import-crontab", "-", "--apply", stdin=b"# taken by hand\n0 2 * * * x\n")
        assert ended.code == 1
        assert "exists and belongs to no set; use --adopt to take it over" in ended.out
        assert (
            shell.foliot("import-crontab", "-", "--apply", "--adopt", stdin=b"# taken by hand\n0 2 * * * x\n").code == 0
        )

    def test_an_imported_command_runs_with_its_input(self, shell: Shell) -> None:
        shell.done("import-crontab", "-", "--apply", stdin=b"A=b\n# with input\n0 0 1 1 * echo $A; cat%to the end\n")
        run_id = json.loads(shell.done("trigger", "with input", "--json"))["id"]
        assert shell.done("logs", "-f", run_id) == "b\nto the end\n"

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["/no/such/crontab"], "/no/such/crontab: No such file"),
            (["-", "--timezone", "Mars/Olympus"], "Mars/Olympus"),
        ],
        ids=["no file", "no zone"],
    )
    def test_an_unreadable_file_is_refused(self, shell: Shell, arguments: list[str], complaint: str) -> None:
        assert complaint in shell.refusal("import-crontab", *arguments, code=2)

    def test_bytes_that_are_not_text_are_refused(self, shell: Shell) -> None:
        assert "invalid UTF-8 at byte 2" in shell.refusal("import-crontab", "-", code=2, stdin=b"# \xff")

    def test_without_a_file_the_crontab_of_the_user_is_read(
        self, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program = tmp_path / "crontab"
        program.write_text('#!/bin/sh\n[ "$1" = -l ] && echo "0 1 * * * mine"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        assert "mine" in shell.done("import-crontab")
        program.write_text("#!/bin/sh\necho no crontab for you >&2; exit 1\n")
        assert "crontab -l: no crontab for you" in shell.refusal("import-crontab", code=2)
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
        assert "the program crontab is not installed" in shell.refusal("import-crontab", code=2)


# Lines that other crons and other schedulers take


@pytest.mark.parametrize(
    ("line", "when"),
    [
        ("CRON_TZ=Asia/Tokyo 0 9 * * * x", ("0 9 * * *", "Asia/Tokyo")),
        ("TZ=Asia/Tokyo 0 9 * * * x", ("0 9 * * *", "Asia/Tokyo")),
        ('CRON_TZ="Asia/Tokyo" @daily x', ("0 0 * * *", "Asia/Tokyo")),
        ("0 22-4 * * FRI-MON x", ("0 22-4 * * FRI-MON", "UTC")),
        ("0 0 13 * +FRI x", ("0 0 13 * +FRI", "UTC")),
        ("0 0 L-1W november-MAR MON#1,fri#L x", ("0 0 L-1W november-MAR MON#1,fri#L", "UTC")),
    ],
)
def test_an_entry_accepts_every_cron_expression(line: str, when: tuple[str, str]) -> None:
    job = only(line)
    assert ((job["cron"], job["timezone"]), job["payload"]["command"]) == (when, "x")


def test_a_zone_before_an_entry_applies_to_that_entry_alone() -> None:
    found = parsed("CRON_TZ=Asia/Tokyo 0 9 * * * one\n0 9 * * * two\n")
    assert [(entry.fields["timezone"], entry.fields["payload"].get("environment")) for entry in found.entries] == [
        ("Asia/Tokyo", None),
        ("UTC", None),
    ]
    assert (found.notes, found.left_out) == ([], [])


def test_an_empty_zone_resets_to_the_machine_and_tz_applies_to_commands() -> None:
    found = parsed("CRON_TZ=Asia/Tokyo\n0 1 * * * one\nCRON_TZ=\n0 1 * * * two\nTZ=Asia/Tokyo\n0 1 * * * three\n")
    assert [entry.fields["timezone"] for entry in found.entries] == ["Asia/Tokyo", "UTC", "UTC"]
    assert found.entries[2].fields["payload"]["environment"] == {"TZ": "Asia/Tokyo"}


def test_a_period_becomes_a_job_with_an_interval() -> None:
    job = only("@every 1h30m  /opt/run.sh --now")
    assert (job["every"], "cron" in job, job["payload"]["command"]) == ("1h30m", False, "/opt/run.sh --now")
    assert "write it like 90s" in parsed("@every now x").left_out[0].text
    assert "command is missing" in parsed("@every 5m").left_out[0].text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("*/90 * * * * x", "use every: 90m"),
        ("0 0 */40 * * x", "use every: 40d"),
        ("5-10/30 * * * * x", "write 5"),
        ("@reboot x", "let systemd run it"),
        ("@fortnightly x", "there is no alias '@fortnightly'"),
        ("CRON_TZ=Mars/Olympus 0 9 * * * x", "no IANA time zone"),
    ],
)
def test_an_unsupported_line_gets_a_suggestion(line: str, text: str) -> None:
    found = parsed(line)
    assert found.entries == []
    assert text in (found.left_out or found.notes)[0].text


@pytest.mark.parametrize(
    "line",
    ["A=x" + " " * 200_000 + "y", "A" * 200_000, "* " * 100_000, "@" + "x" * 200_000, "1," * 100_000 + "1 * * * * x"],
)
def test_a_line_of_a_hundred_kilobytes_is_read_quickly(line: str) -> None:
    started = time.process_time()
    parsed(f"{line}\n")
    assert time.process_time() - started < 2


@pytest.mark.process
class TestWithoutAServer:
    CRONTAB = b"# Nightly\n30 2 * * * /opt/run.sh\n*/5 * * * * root /opt/other.sh\n"

    def test_jobs_are_printed_as_yaml_for_apply(self, shell: Shell, closed_port: int) -> None:
        nowhere = f"http://127.0.0.1:{closed_port}"
        ended = shell.foliot("import-crontab", "-", "--timezone", "UTC", stdin=self.CRONTAB, url=nowhere)
        assert ended.code == 0
        assert "no Foliot answers" in ended.err
        first, second = yaml.safe_load_all(ended.out)
        assert (first["name"], first["cron"], second["cron"]) == ("Nightly", "30 2 * * *", "*/5 * * * *")
        assert shell.done("apply", "-", "--dry-run", "--set", "yaml", stdin=ended.out.encode()).count("create") == 3
        explicit = shell.foliot("import-crontab", "-", "--yaml", "--timezone", "UTC", stdin=self.CRONTAB, url=nowhere)
        assert (explicit.out, "no Foliot answers" in explicit.err) == (ended.out, False)
        assert "no Foliot answers" in shell.refusal(
            "import-crontab", "-", "--apply", code=1, stdin=self.CRONTAB, url=nowhere
        )

    def test_a_user_column_causes_a_warning(self, shell: Shell) -> None:
        said = shell.foliot("import-crontab", "-", "--yaml", stdin=self.CRONTAB).err
        assert ":3: the command begins with 'root', which is a user of this machine: use --system" in said
        assert ":2:" not in said


def test_a_system_crontab_without_users_causes_a_warning() -> None:
    found = parsed("0 1 * * * /usr/bin/tidy now\n", has_users=True)
    assert [note.text for note in found.left_out] == [
        "'/usr/bin/tidy' is no user name; if the entries name no users, leave out --system"
    ]
