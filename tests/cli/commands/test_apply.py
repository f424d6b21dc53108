"""`foliot apply` makes the server match the files and changes nothing else. Errors in files are reported with file,
line and field."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.terminal import Ended, Shell

pytestmark = pytest.mark.process
numbers = itertools.count(1)


@pytest.fixture
def prefix() -> str:
    """A prefix that no other test on the server uses."""
    return f"applied {next(numbers)}"


def job_of(shell: Shell, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell.done("jobs", "show", name, "--json"))
    return found


def schedule_of(job: dict[str, Any]) -> dict[str, Any]:
    """The schedule without its default values."""
    defaults = {"timezone": "UTC", "catchup_window_seconds": 86_400}
    return {name: value for name, value in job["schedule"].items() if defaults.get(name) != value}


def actions(ended: Ended) -> dict[str, str]:
    return {item["name"]: item["action"] for item in json.loads(ended.out)["items"]}


def test_zone_and_period_of_an_expression_are_not_declared_twice(shell: Shell, tmp_path: Path, prefix: str) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(f"""\
- {{name: {prefix} tokyo, command: date, cron: "CRON_TZ=Asia/Tokyo 0 9 * * FRI-MON"}}
- {{name: {prefix} often, command: date, cron: "@every 90m"}}
- {{name: {prefix} aws, command: date, cron: "cron(0 9 ? * 2-6 *)"}}
""")
    assert "CRON_TZ=Asia/Tokyo 0 9 * * FRI-MON: date" in shell.done("apply", str(file))
    assert set(actions(shell.foliot("apply", "--json", str(file))).values()) == {"unchanged"}
    assert schedule_of(job_of(shell, f"{prefix} tokyo")) == {"cron": "0 9 * * FRI-MON", "timezone": "Asia/Tokyo"}
    assert schedule_of(job_of(shell, f"{prefix} often")) == {"every": "90m"}
    assert schedule_of(job_of(shell, f"{prefix} aws")) == {"cron": "0 9 ? * MON-FRI"}
    file.write_text(f'{{name: {prefix} tokyo, command: date, cron: "*/90 * * * *"}}')
    refused = shell.foliot("apply", str(file))
    assert refused.code == 2
    assert "use every: 90m" in refused.err


def test_declared_jobs_are_created_changed_left_alone_and_pruned(shell: Shell, tmp_path: Path, prefix: str) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(f"""\
name: {prefix} report
command: make report
cron: "0 3 * * *"
timezone: Europe/Berlin
overlap: buffer_one
retries: 5
---
- {{name: {prefix} tidy, task: simulate, every: 1h, payload: {{execution_time_ms: 5}}, metadata: {{team: web}}}}
- kind: job
  name: {prefix} gone soon
  command: "true"
  cron: "@daily"
""")
    report, tidy, gone = (f"{prefix} {word}" for word in ("report", "tidy", "gone soon"))
    dry = shell.foliot("apply", "--dry-run", str(file))
    assert (dry.code, dry.out.count("create ")) == (0, 3)
    assert dry.out.endswith("3 create; dry run: nothing was changed\n")
    assert f"{file}:1" in dry.out
    assert f"{file}:8" in dry.out
    assert report not in shell.done("jobs")

    assert actions(shell.foliot("apply", "--json", str(file))) == dict.fromkeys([report, tidy, gone], "create")
    job = job_of(shell, report)
    assert job["schedule"] == {"cron": "0 3 * * *", "timezone": "Europe/Berlin", "overlap": "buffer_one"}
    assert (job["payload"], job["options"]) == ({"command": "make report"}, {"retries": 5})
    assert job["metadata"] == {"applied_by": str(file)}
    assert '"team":"web"' in shell.done("jobs", "show", tidy)
    assert job_of(shell, tidy)["metadata"] == {"applied_by": str(file), "team": "web"}
    assert actions(shell.foliot("apply", "--json", str(file))) == dict.fromkeys([report, tidy, gone], "unchanged")
    assert job_of(shell, report)["version"] == job["version"]

    # A field removed from the file falls back to its default, and a schedule of another kind replaces the first.
    file.write_text(f"""\
- {{name: {report}, command: make reports, every: 2h, priority: 3}}
- {{name: {tidy}, command: "echo another task", every: 1h}}
""")
    changed = shell.foliot("apply", str(file))
    assert changed.code == 0
    assert "every: default -> 2h" in changed.out
    assert changed.out.endswith("1 change, 1 replace\n")
    job = job_of(shell, report)
    assert (schedule_of(job), job["payload"], job["options"], job["priority"]) == (
        {"every": "2h"},
        {"command": "make reports"},
        None,
        3,
    )
    assert (job_of(shell, tidy)["task"], job_of(shell, tidy)["metadata"]) == ("shell", {"applied_by": str(file)})

    assert actions(shell.foliot("apply", "--prune", "--dry-run", "--json", str(file)))[gone] == "remove"
    assert job_of(shell, gone)["name"] == gone
    assert actions(shell.foliot("apply", "--prune", "--json", str(file))) == {
        report: "unchanged",
        tidy: "unchanged",
        gone: "remove",
    }
    assert gone not in shell.done("jobs")


def test_a_schedule_with_any_field_is_unchanged_when_applied_again(shell: Shell, tmp_path: Path, prefix: str) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(f"""\
name: {prefix} all
task: simulate
cron: ["0 3 * * *", "H 4 * * *"]
times: [2100-01-01T00:00:00Z, "2100-01-01T12:00:00+01:00"]
timezone: Asia/Tokyo
dst_gap: skip
dst_fold: both
start_at: 2020-01-01T00:00:00+02:00
end_at: 2150-01-01T00:00:00Z
jitter_seconds: 30
overlap: cancel_other
catchup: all
catchup_window: 2h
catchup_max: 7
queue: mail
priority: -2
retries: 1
timeout_seconds: 1.5
backoff: {{kind: list, waits: [1, 2.5]}}
concurrency: {{key: k, limit: 2}}
rate: {{key: r, limit: 3, period_seconds: 60}}
retry_on: [ValueError, 3]
max_snoozes: 4
guarantee: at_most_once
payload: {{when: 2030-01-01, nested: {{list: [1, two, null, true]}}}}
metadata: {{deep: [1, {{a: b}}]}}
""")
    name = f"{prefix} all"
    assert actions(shell.foliot("apply", "--json", str(file))) == {name: "create"}
    again = json.loads(shell.foliot("apply", "--json", str(file)).out)["items"][0]
    assert (again["action"], again["changes"]) == ("unchanged", {})
    # Back to the required fields only: every other field gets its default.
    file.write_text(f"{{name: {name}, task: simulate, every: 1h, queue: mail}}")
    assert actions(shell.foliot("apply", "--json", str(file))) == {name: "change"}
    job = job_of(shell, name)
    assert (schedule_of(job), job["options"], job["payload"], job["priority"]) == ({"every": "1h"}, None, {}, 0)


def test_json_files_directories_and_standard_input_are_read(shell: Shell, tmp_path: Path, prefix: str) -> None:
    (tmp_path / "one.json").write_text(
        f'{{\n\t"name": "{prefix} one \\ud83d\\ude00",\n\t"command": "true", "every": "1h"\n}}'
    )
    (tmp_path / "two.yml").write_text(f"name: {prefix} two\ncommand: 'true'\nevery: 1h\n")
    (tmp_path / "notes.txt").write_text("not looked at")
    assert actions(shell.foliot("apply", "--json", str(tmp_path))) == {
        f"{prefix} one \U0001f600": "create",
        f"{prefix} two": "create",
    }
    (tmp_path / "two.yml").unlink()
    pruned = shell.foliot("apply", "--json", "--prune", str(tmp_path))
    assert actions(pruned) == {f"{prefix} one \U0001f600": "unchanged", f"{prefix} two": "remove"}
    piped = shell.foliot("apply", "--json", "-", stdin=f"{{name: {prefix} piped, command: 'true', every: 1h}}".encode())
    assert actions(piped) == {f"{prefix} piped": "create"}


def test_pruning_a_set_leaves_other_sets_alone(shell: Shell, tmp_path: Path, prefix: str) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(f"{{name: {prefix} shared, command: 'true', every: 1h}}")
    other.write_text(f"{{name: {prefix} shared, command: 'false', every: 1h}}")
    shell.done("submit", "--command", "true", "--every", "1h", "--name", f"{prefix} by hand")
    shell.done("apply", str(one))
    refused = shell.foliot("apply", "--prune", str(other))
    assert (refused.code, refused.out.count("remove")) == (1, 0)
    assert f"belongs to the set {one}; use --adopt to take it over" in refused.out
    assert job_of(shell, f"{prefix} shared")["payload"] == {"command": "true"}
    shell.done("apply", "--adopt", str(other))
    assert job_of(shell, f"{prefix} shared")["metadata"] == {"applied_by": str(other)}
    # Jobs that no file declares may stay. A name in the file takes precedence over the path.
    one.write_text(f"{{name: {prefix} by hand, command: 'false', every: 1h}}")
    shell.done("apply", "--set", "production", str(one))
    assert job_of(shell, f"{prefix} by hand")["metadata"] == {"applied_by": "production"}


def test_refusals_of_the_server_are_reported_before_any_change(shell: Shell, tmp_path: Path, prefix: str) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(
        f"- {{name: {prefix} good, task: simulate, every: 1h}}\n- "
        f"{{name: {prefix} bad, task: nobody-knows-it, every: 1h}}\n"
    )
    for arguments in ([], ["--dry-run"]):
        refusal = shell.refusal("apply", *arguments, str(file), code=2)
        assert refusal == f"foliot: {file}:2: task: no worker knows a task named 'nobody-knows-it'\n"
    assert f"{prefix} good" not in shell.done("jobs")


@pytest.mark.parametrize(
    ("name", "text", "complaints"),
    [
        ("a.yaml", "name: x\ncommand: y\n\ncron: 61 * * * *\n", ["a.yaml:4: cron: minute: 61 is not between 0 and 59"]),
        ("a.yaml", "name: x\ncommand: y\nevery: 1h\ncorn: z\n", ["a.yaml:4: corn: there is no such field"]),
        ("a.yaml", "command: y\nevery: 1h\n", ["a.yaml:1: name: required in a declared job"]),
        ("a.yaml", "name: x\ncommand: y\n", ["a.yaml:1: cron: a declared job must be recurring"]),
        ("a.yaml", "name: x\ncommand: y\nevery: 1h\nmax_runs: 3\n", ["a.yaml:4: max_runs: not allowed in a declared "
        "job"]),
        ("a.yaml", "name: x\nkind: jbo\n", ["a.yaml:2: kind: unknown kind 'jbo', did you mean 'job'?"]),
        ("a.yaml", "name: x\ncommand: y\nevery: 1h\nname: z\n", ["a.yaml:4: name: field is repeated"]),
        ("a.yaml", "name: x\ncommand: [\n", ["a.yaml:3: invalid YAML: "]),
        ("a.yaml", "name: x\nevery: 1h\ntask: simulate\npayload:\n  a: .nan\n", ["a.yaml:5: payload.a: nan can't be "
        "written in JSON"]),
        ("a.yaml", "name: x\nevery: 1h\ntask: simulate\npayload:\n  ? [1]\n  : 2\n", ["a.yaml:5: invalid YAML: found "
        "unhashable key"]),
        ("a.yaml", "name: x\nevery: 1h\ntask: simulate\nretries: many\n", ["a.yaml:4: retries: must be an integer or "
        "null, not a string"]),
        ("a.yaml", "name: !!python/object/apply:os.system [id]\n", ["a.yaml:1: invalid YAML: could not determine a "
        "constructor"]),
        ("a.yaml", "just text\n", ["a.yaml:1: a document must be an object or a list of objects, not text"]),
        ("a.json", '{"name": "x",\n "command": "y",\n "every": "soon"}', ["a.json:3: every: can't read 'soon'"]),
        ("a.json", '{"name": "x",\n}', ["a.json:2: invalid JSON: "]),
        (
            "a.yaml",
            "- {name: x, command: y, every: 1h}\n- {name: x, command: y, every: 1h}\n- 7\n",
            ["a.yaml:3: a document must be an object", "a.yaml:2: name: 'x' is already declared in a.yaml:1"],
        ),
    ],
    ids=[str(number) for number in range(16)],
)  # fmt: skip
def test_errors_in_a_file_are_reported_with_their_place(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, complaints: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    said = shell.refusal("apply", name, code=2).splitlines()
    assert len(said) == len(complaints)
    for line, complaint in zip(said, complaints, strict=True):
        assert line.startswith(f"foliot: {complaint}")


def test_errors_are_reported_as_json_too(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: x\ncommand: y\ncron: nope\n")
    ended = shell.foliot("apply", "--json", str(tmp_path / "a.yaml"), str(tmp_path / "missing.yaml"))
    first, second = json.loads(ended.out)["errors"]
    assert (ended.code, first["line"], first["field"]) == (2, 3, "cron")
    assert (second["file"], second["detail"]) == (str(tmp_path / "missing.yaml"), "No such file or directory")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "the directory has no file" in shell.refusal("apply", str(empty), code=2)


def test_declared_workflows_recur_or_run_once(shell: Shell, tmp_path: Path, prefix: str) -> None:
    file = tmp_path / "workflows.yaml"
    text = f"""\
- kind: workflow
  name: {prefix} nightly
  every: 1h
  steps:
    - {{key: extract, command: "true"}}
    - {{key: load, command: "true", after: [extract]}}
    - {{key: tidy, command: "true", teardown: true}}
- kind: workflow
  name: {prefix} once
  steps: [{{key: only, command: "true"}}]
"""
    nightly, once = f"{prefix} nightly", f"{prefix} once"
    file.write_text(text)
    assert actions(shell.foliot("apply", str(file), "--json")) == {nightly: "create", once: "run"}
    assert actions(shell.foliot("apply", str(file), "--json")) == {nightly: "unchanged", once: "unchanged"}
    assert job_of(shell, nightly)["payload"]["steps"][2]["after"] == ["extract", "load"]
    file.write_text(text.replace('command: "true", after', 'command: "echo", after'))
    assert actions(shell.foliot("apply", str(file), "--json")) == {nightly: "change", once: "unchanged"}
    assert job_of(shell, nightly)["payload"]["steps"][1]["command"] == "echo"
    file.write_text(text.replace("[extract]", "[nothing]"))
    refused = shell.foliot("apply", str(file))
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert f"{file}:6: steps[1].after" in refused.err


def test_a_changed_workflow_is_checked_by_the_server_too(shell: Shell, tmp_path: Path, prefix: str) -> None:
    file = tmp_path / "workflow.json"
    file.write_text(
        json.dumps({"kind": "workflow", "name": prefix, "every": "1h", "steps": [{"key": "a", "task": "simulate"}]})
    )
    assert actions(shell.foliot("apply", str(file), "--json")) == {prefix: "create"}
    file.write_text(
        json.dumps({"kind": "workflow", "name": prefix, "every": "1h", "steps": [{"key": "a", "task": "unheard_of"}]})
    )
    assert "steps[0].task: no worker knows a task named 'unheard_of'" in shell.refusal("apply", str(file), code=2)


def test_all_errors_are_reported_at_once_in_dry_runs_too(shell: Shell, tmp_path: Path, prefix: str) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(f"""\
name: {prefix} one
task: simulat
cron: "61 * * * *"
retries: -1
---
name: {prefix} two
task: shell
every: 1h
payload:
  command: date
  sandbox: true
---
kind: workflow
name: {prefix} three
cron: "@daily"
steps:
  - key: a
    task: nope
  - key: b
    task: shell
    payload: {{sandbox: 7}}
    after: [a]
---
name: {prefix} fine
task: simulate
every: 1h
""")
    expected = {
        (4, "retries"), (3, "cron"), (2, "task"),
        (11, "payload.sandbox"),
        (18, "steps[0].task"), (21, "steps[1].payload.sandbox"),
    }  # fmt: skip
    for arguments in (["--dry-run"], []):
        refused = shell.foliot("apply", "--json", *arguments, str(file))
        assert refused.code == 2
        faults = json.loads(refused.out)["errors"]
        assert {(fault["line"], fault["field"]) for fault in faults} >= expected
        assert all(line.startswith(f"foliot: {file}:") for line in refused.err.splitlines())
        assert f"{prefix} fine" not in shell.done("jobs")
    assert "did you mean 'simulate'?" in refused.err


def test_errors_in_a_file_are_reported_without_a_server(
    shell: Shell, tmp_path: Path, closed_port: int, prefix: str
) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(f'{{name: {prefix}, task: simulate, cron: "nonsense", priority: high}}')
    refused = shell.foliot("apply", str(file), url=f"http://127.0.0.1:{closed_port}")
    assert (refused.code, len(refused.err.splitlines())) == (2, 2)
    file.write_text(f'{{name: {prefix}, task: simulate, cron: "@daily"}}')
    assert "no Foliot answers" in shell.refusal("apply", str(file), code=1, url=f"http://127.0.0.1:{closed_port}")


def test_a_job_may_depend_on_another_job_of_the_file(shell: Shell, tmp_path: Path, prefix: str) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(f"""\
- {{name: {prefix} first, task: simulate, cron: "@daily"}}
- {{name: {prefix} then, task: simulate, cron: "@daily", dependencies: ["{prefix} first"]}}
""")
    assert shell.done("apply", "--dry-run", str(file)).count("create ") == 2
    assert shell.done("apply", str(file)).count("create ") == 2
    file.write_text(f'{{name: {prefix} last, task: simulate, cron: "@daily", dependencies: [{prefix} nobody]}}')
    assert "dependencies: " in shell.refusal("apply", "--dry-run", str(file), code=2)


def test_alert_rules_are_created_changed_and_left_alone(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("""\
kind: alert_rule
name: applied-rate
condition: {kind: success_rate, below: 95, each: job}
scope: {tag: billing}
""")
    assert "alert rule: success_rate" in shell.done("apply", str(file), "--dry-run")
    assert "applied-rate" not in shell.foliot("alerts", "rules").out
    assert actions(shell.foliot("apply", "--json", str(file))) == {"applied-rate": "create"}
    assert actions(shell.foliot("apply", "--json", str(file))) == {"applied-rate": "unchanged"}
    file.write_text(file.read_text() + "for: 5m\nseverity: critical\n")
    changed = json.loads(shell.foliot("apply", "--json", str(file)).out)["items"][0]
    assert changed["changes"] == {
        "for": {"from": None, "to": "5m"},
        "severity": {"from": "warning", "to": "critical"},
    }
    file.write_text(file.read_text() + "channels: [nobody]\n")
    refused = shell.foliot("apply", str(file))
    assert refused.code == 1
    assert "there is no alert channel 'nobody'" in refused.out
    file.write_text("kind: alert_rule\nname: applied-rate\ncondition: {kind: success_rate, below: 195}\n")
    wrong = shell.foliot("apply", str(file))
    assert wrong.code == 2
    assert f"{file}:3: condition.below: " in wrong.err
    shell.done("alerts", "rules", "delete", "applied-rate")


def test_sources_are_created_changed_and_left_alone(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_text("{kind: source, name: applied-hook, from: webhook, secret: env:HOOK_SECRET, task: simulate}")
    assert "source: webhook -> simulate" in shell.done("apply", str(file), "--dry-run")
    assert "applied-hook" not in shell.foliot("sources").out
    assert actions(shell.foliot("apply", "--json", str(file))) == {"applied-hook": "create"}
    assert actions(shell.foliot("apply", "--json", str(file))) == {"applied-hook": "unchanged"}
    file.write_text(file.read_text().replace("simulate", "simulate, priority: 5"))
    changed = json.loads(shell.foliot("apply", "--json", str(file)).out)["items"][0]
    assert changed["changes"] == {"priority": {"from": None, "to": 5}}
    file.write_text(file.read_text().replace("HOOK_SECRET", "SECRET_OF_OTHERS"))
    refused = shell.foliot("apply", str(file))
    assert refused.code == 1
    assert "secret_references" in refused.out
    for text, why in (("from: pigeon", "from: "), ("task: simulate", "from: required"), ("from: redis", "task")):
        file.write_text(f"kind: source\nname: applied-hook\n{text}\n")
        wrong = shell.foliot("apply", str(file))
        assert wrong.code == 2
        assert why in wrong.err
    shell.done("sources", "delete", "applied-hook")


def test_a_word_that_yaml_reads_as_true_must_be_quoted(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("{name: x, command: date, cron: '@daily', notify: [{url: 'https://a.example', on: [failed]}]}")
    assert "field name True must be a string; put it in quotes" in shell.refusal("apply", str(file), code=2)
