"""Importing the DAGs of an Airflow file: the resulting workflows, and the messages about parts without an equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from foliot.cli.imports.airflow_file import read_dags
from foliot.cli.imports.airflow_templates import UnknownTemplate, placeholders
from foliot.cli.imports.imported_jobs import Imported
from foliot.errors import Invalid
from tests.support.terminal import Shell

SALES = """
from datetime import timedelta
import pendulum
from airflow import DAG
from airflow.decorators import task

BUCKET = "sales"
default_args = {"retries": 2, "retry_delay": timedelta(minutes=5), "email_on_failure": True}

with DAG(
    "nightly/sales",
    schedule="0 3 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="Europe/Berlin"),
    catchup=False,
    max_active_runs=1,
    tags=["sales"],
    default_args=default_args,
) as dag:
    start = EmptyOperator(task_id="start")
    extract = BashOperator(
        task_id="extract",
        bash_command=f"extract.py {BUCKET} {{{{ ds }}}}",
        execution_timeout=timedelta(hours=1),
    )
    with TaskGroup("clean") as clean:
        strip = PythonOperator(task_id="strip", python_callable=strip_rows, op_kwargs={"width": 3})
        merge = SnowflakeOperator(task_id="merge", sql="select 1")
        strip >> merge

    @task
    def count() -> int:
        return 3

    @task
    def load(rows: int, kind: str = "some") -> None:
        print(rows)

    loaded = load(count(), kind="all")
    done = BashOperator(task_id="done", bash_command="echo done", trigger_rule="all_done", retries=0)
    start >> extract >> clean >> loaded
    done << [extract, loaded]
"""


def dag(body: str, options: str = 'schedule="@daily"') -> str:
    return f'with DAG("some", {options}):\n' + "".join(f"    {line}\n" for line in body.splitlines())


def only(text: str) -> dict[str, Any]:
    """The only workflow of a file of which nothing was left out."""
    found = read_dags(text, "dag.py")
    assert not found.left_out
    (entry,) = found.entries
    return dict(entry.fields)


def steps(text: str) -> dict[str, Any]:
    return {step["key"]: step for step in only(text)["steps"]}


def texts(found: Imported) -> list[str]:
    return [f"{note.line}: {note.text}" for note in found.left_out]


def test_a_dag_becomes_a_scheduled_workflow() -> None:
    workflow = only(SALES)
    found = {name: value for name, value in workflow.items() if name != "steps"}
    assert found == {
        "kind": "workflow",
        "name": "nightly-sales",
        "cron": "0 3 * * *",
        "timezone": "Europe/Berlin",
        "start_at": "2026-01-01T00:00:00+01:00",
        "catchup": "latest",
        "overlap": "buffer_all",
        "tags": ["sales"],
    }


def test_operators_become_steps_in_order() -> None:
    found = steps(SALES)
    assert {key: step.get("after", []) for key, step in found.items()} == {
        "start": [],
        "extract": ["start"],
        "clean.strip": ["extract"],
        "clean.merge": ["clean.strip"],
        "count": [],
        "load": ["count", "clean.merge"],
        "done": ["extract", "load"],
    }
    assert found["start"]["task"] == "wait"
    assert found["extract"]["payload"] == {"command": 'extract.py sales {{ previous_tick | in_zone "UTC" | date }}'}
    assert (found["extract"]["retries"], found["extract"]["timeout_seconds"]) == (2, 3600)
    assert found["extract"]["backoff"] == {"kind": "fixed", "base_seconds": 300}
    assert (found["clean.strip"]["task"], found["clean.strip"]["payload"]) == ("strip_rows", {"width": 3})
    assert (found["clean.merge"]["task"], found["clean.merge"]["payload"]) == ("merge", {"sql": "select 1"})
    assert found["load"]["payload"] == {"rows": {"$result": "count"}, "kind": "all"}
    assert (found["done"]["rule"], found["done"]["retries"]) == ("all_done", 0)


def test_notes_name_the_functions_to_write() -> None:
    notes = " ".join(note.text for note in read_dags(SALES, "dag.py").notes)
    assert "declare the function strip_rows with @app.task" in notes
    assert "SnowflakeOperator has no equal: write the task 'merge' yourself" in notes
    assert "no mail is sent" in notes


@pytest.mark.parametrize(
    ("options", "when"),
    [
        ('schedule="@hourly"', {"cron": "0 * * * *"}),
        ("schedule_interval=timedelta(minutes=90)", {"every": "5400s"}),
        ('schedule="0 5 * * *", catchup=True', {"cron": "0 5 * * *", "catchup": "all"}),
        ("schedule=None", {}),
    ],
)
def test_a_schedule_becomes_cron_or_an_interval(options: str, when: dict[str, str]) -> None:
    workflow = only(dag('BashOperator(task_id="one", bash_command="true")', options))
    assert when.items() <= workflow.items()
    assert ("cron" in workflow or "every" in workflow) is bool(when)


def test_functions_with_dag_and_names_of_dags_are_understood() -> None:
    text = """
@dag(schedule="@daily")
def first():
    BashOperator(task_id="one", bash_command="true")

second = DAG(dag_id="second", schedule="@daily")
one = BashOperator(task_id="one", bash_command="true", dag=second)
two = BashOperator(task_id="two", bash_command="true", dag=second)
one.set_downstream(two)
"""
    one, two = (entry.fields for entry in read_dags(text, "dag.py").entries)
    assert (one["name"], [step["key"] for step in one["steps"]]) == ("first", ["one"])
    assert (two["name"], [step.get("after") for step in two["steps"]]) == ("second", [None, ["one"]])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in range(3):\n    BashOperator(task_id=f't{i}', bash_command='x')", "2: tasks made in a 'for'"),
        ("BashOperator(task_id=name(), bash_command='x')", "2: a BashOperator whose task_id is known only"),
        ("BashOperator(task_id='a', bash_command=read())", "2: a: bash_command is known only when the file runs"),
        ("BashOperator(task_id='a', bash_command='{% if x %}')", "2: a: the template {% ... %} has no equal"),
        ("BashOperator(task_id='a', bash_command='{{ var.value.key }}')", "2: a: the template {{ var.value.key }}"),
        ("a = BashOperator(task_id='a', bash_command='x')\na >> elsewhere", "3: elsewhere is no task of this file"),
    ],
)
def test_parts_that_are_known_only_at_run_time_are_reported(body: str, expected: str) -> None:
    assert any(expected in text for text in texts(read_dags(dag(body), "dag.py")))


FUNCTIONS = """
@task(task_id="read_rows", retries=2, trigger_rule=TriggerRule.ALL_DONE)
def read(): ...

@task
def load(rows, first): ...

found = read()
load(found["rows"], first=found["rows"][0])
"""


def test_arguments_of_a_function_and_parts_of_results_are_kept() -> None:
    read, load = only(dag(FUNCTIONS))["steps"]
    assert read == {"key": "read_rows", "task": "read", "retries": 2, "rule": "all_done"}
    assert load["after"] == ["read_rows"]
    assert load["payload"] == {
        "rows": {"$result": "read_rows", "path": ["rows"]},
        "first": {"$result": "read_rows", "path": ["rows", 0]},
    }


LISTS = """
one = EmptyOperator(task_id="one")
two = EmptyOperator(task_id="two")
three = EmptyOperator(task_id="three")
four = EmptyOperator(task_id="four")
first = [one, two]
chain(*first)
chain(first, [three, four])
"""


def test_lists_in_a_chain_are_unpacked_and_put_in_order_pair_by_pair() -> None:
    found = steps(dag(LISTS))
    assert {key: step.get("after") for key, step in found.items()} == {
        "one": None,
        "two": ["one"],
        "three": ["one"],
        "four": ["two"],
    }


def test_an_operator_runs_after_the_tasks_whose_results_it_gets() -> None:
    body = 'a = CustomOperator(task_id="a")\nb = CustomOperator(task_id="b", rows=a.output)'
    found = read_dags(dag(body), "dag.py")
    assert found.entries[0].fields["steps"][1]["after"] == ["a"]
    assert texts(found) == ["3: b: rows is known only when the file runs"]


GROUP = """
@task_group
def pair(): ...

@task
def one(): ...

pair()
one.expand(x=[1])
for number in range(3):
    one()
"""


def test_groups_maps_and_loops_of_functions_are_reported() -> None:
    assert [text.partition(": ")[2] for text in texts(read_dags(dag(GROUP), "dag.py"))] == [
        "the task group pair: write its tasks as steps, or as a workflow of their own",
        "one.expand(): write the step, or a map, yourself",
        "tasks made in a 'for' statement are known only when the file runs",
        "the DAG 'some' has no task that could be read",
    ]


def test_the_file_is_never_executed(tmp_path: Path) -> None:
    trap = tmp_path / "executed"
    read_dags(f"open({str(trap)!r}, 'w')\n" + dag("BashOperator(task_id='a', bash_command='x')"), "dag.py")
    assert not trap.exists()


@pytest.mark.parametrize("text", ["x = (", "\0", "print(1)", ""])
def test_a_file_without_a_dag_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"dag\.py"):
        read_dags(text, "dag.py")


@pytest.mark.parametrize(
    ("template", "placeholder"),
    [
        ("{{ ds }}", '{{ previous_tick | in_zone "UTC" | date }}'),
        ("{{data_interval_end}}", '{{ scheduled_for | in_zone "UTC" | iso }}'),
        ("{{ macros.ds_add(ds, -7) }}", '{{ previous_tick | in_zone "UTC" | add "-7d" | date }}'),
        ("{{ logical_date.strftime('%Y/%m') }}", '{{ previous_tick | in_zone "UTC" | format "%Y/%m" }}'),
        ("{{ params.region }}", "{{ params.region }}"),
        ("{{ ti.xcom_pull(task_ids='extract') }}", '{{ results["extract"] }}'),
        ("no template", "no template"),
    ],
)
def test_templates_become_placeholders(template: str, placeholder: str) -> None:
    assert placeholders(template) == placeholder


@pytest.mark.parametrize("template", ["{{ conn.shop.host }}", "{% for x in y %}", "{{ ds | upper }}"])
def test_other_templates_are_refused(template: str) -> None:
    with pytest.raises(UnknownTemplate):
        placeholders(template)


class TestOnAServer:
    def test_a_dag_is_applied_once_and_changed_by_its_file(self, shell: Shell, tmp_path: Path) -> None:
        file = tmp_path / "dag.py"
        body = "one = BashOperator(task_id='one', bash_command='echo {{ ds }}')\none >> EmptyOperator(task_id='two')"
        file.write_text(dag(body, 'schedule="0 3 * * *", start_date=datetime(2026, 1, 1)'))
        shown = shell.foliot("import", "airflow", str(file))
        assert (shown.code, "create" in shown.out) == (0, True)
        assert "some" not in shell.done("jobs")
        assert shell.foliot("import", "airflow", str(file), "--apply").code == 0
        job = json.loads(shell.done("jobs", "show", "some", "--json"))
        assert (job["task"], job["schedule"]["timezone"]) == ("workflow", "UTC"), job
        again = json.loads(shell.done("import", "airflow", str(file), "--apply", "--json"))
        assert [item["action"] for item in again["items"]] == ["unchanged"]

    def test_a_dag_with_a_task_that_no_worker_knows_is_left_out(self, shell: Shell, tmp_path: Path) -> None:
        file = tmp_path / "dag.py"
        file.write_text(SALES)
        shown = shell.foliot("import", "airflow", str(file))
        assert (shown.code, "no worker knows a task named 'strip_rows'" in shown.err) == (1, True)

    def test_a_dag_without_a_schedule_is_only_printed(self, shell: Shell, tmp_path: Path) -> None:
        file = tmp_path / "dag.py"
        file.write_text(dag('BashOperator(task_id="one", bash_command="echo one")', "schedule=None"))
        applied = shell.foliot("import", "airflow", str(file), "--apply")
        assert (applied.code, "has no schedule" in applied.err) == (1, True)
        printed = shell.done("import", "airflow", str(file), "--yaml")
        (tmp_path / "some.yaml").write_text(printed)
        document = yaml.safe_load(printed)
        assert (document["kind"], document["name"]) == ("workflow", "some")
