"""`foliot import airflow`, compared with a real Airflow that loads its own example DAGs.

Airflow executes the files; the import only reads them. If it finds all tasks of a DAG, both agree on their order, rules
and retries; if it does not, it says so.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foliot.cli.imports.airflow_file import read_dags
from foliot.errors import Invalid
from tests.support.kept import one_at_a_time
from tests.support.packages import empty_environment, pip, without_paths

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(900)]
AIRFLOW = "apache-airflow==2.10.5"
COMPLETE = 35
"""At least 35 of the 59 example DAGs are imported with all their tasks."""
LOAD = """
import json, pathlib, sys
import airflow.example_dags
from airflow.models import DagBag

found = {}
for dag in DagBag(airflow.example_dags.__path__[0], include_examples=False, safe_mode=False).dags.values():
    tasks = {
        task.task_id: {
            "after": sorted(task.upstream_task_ids), "rule": str(task.trigger_rule), "retries": task.retries,
        } for task in dag.tasks
    }
    found.setdefault(dag.fileloc, {})[dag.dag_id] = {"schedule": dag.timetable.summary, "tasks": tasks}
pathlib.Path(sys.argv[1]).write_text(json.dumps(found))
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The examples as Airflow loads them, by file and DAG. The installation is kept between test runs."""
    home = tmp_path_factory.mktemp("airflow")
    with one_at_a_time(AIRFLOW.replace("==", "-")) as kept:
        python = kept / "venv" / "bin" / "python"
        if not (kept / "installed").exists():
            empty_environment(kept / "venv")
            succeed(*pip(), "install", "--quiet", "--target", str(kept / "uv"), "uv")
            # pip takes ten minutes to choose among Airflow's 150 packages.
            succeed(str(kept / "uv" / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(python), AIRFLOW)
            (kept / "installed").touch()
    succeed(str(python), "-c", LOAD, str(home / "found.json"), AIRFLOW_HOME=str(home), AIRFLOW__CORE__LOAD_EXAMPLES="0")
    found: dict[str, dict[str, Any]] = json.loads((home / "found.json").read_text())
    return found


def succeed(*command: str, **environment: str) -> None:
    around = without_paths() | environment
    done = subprocess.run(command, env=around, capture_output=True, text=True, check=False)
    if done.returncode != 0 and "install" in command:
        pytest.skip(f"{AIRFLOW} can't be installed: {(done.stderr.strip() or 'no reason')[-300:]}")
    assert done.returncode == 0, done.stderr[-4000:]


def test_the_imported_workflows_are_what_airflow_runs(loaded: dict[str, dict[str, Any]]) -> None:
    complete = 0
    for file, dags in loaded.items():
        try:
            imported = read_dags(Path(file).read_text(), Path(file).name)
        except Invalid:
            # Its DAGs are made in another way, and nothing is imported.
            continue
        entries = {entry.fields["name"]: entry.fields for entry in imported.entries}
        for name, dag in dags.items():
            tasks = tasks_of(entries[name]) if name in entries else {}
            if tasks.keys() == dag["tasks"].keys():
                assert tasks == dag["tasks"], (file, name)
                complete += 1
            else:
                assert imported.left_out, (file, name)
            if not imported.left_out:
                assert schedule_of(entries[name]) == dag["schedule"], (file, name)
    assert complete >= COMPLETE


def tasks_of(workflow: Mapping[str, Any]) -> dict[str, Any]:
    return {
        step["key"]: {
            "after": sorted(step.get("after", [])),
            "rule": step.get("rule", "all_success"),
            "retries": step.get("retries", 0),
        }
        for step in workflow["steps"]
    }


def schedule_of(workflow: Mapping[str, Any]) -> str:
    """As Airflow sums it up."""
    if every := workflow.get("every"):
        return str(timedelta(seconds=int(every.removesuffix("s"))))
    return str(workflow.get("cron"))
