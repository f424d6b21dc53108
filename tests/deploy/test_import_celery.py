"""`foliot import celery-beat` reads the schedule of a real Celery app."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.packages import pip, without_paths
from tests.support.processes import ROOT

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(600)]

APP = """
from datetime import timedelta
from celery import Celery
from celery.schedules import crontab, solar

app = Celery("shop", broker="memory://")
app.conf.timezone = "Europe/Berlin"

@app.task
def send_report(customer, kind="short"):
    pass

@app.task(autoretry_for=(OSError,), max_retries=5)
def clean_up():
    pass

@app.task
def unscheduled():
    pass

app.conf.beat_schedule = {
    "report/daily": {
        "task": "shop.send_report", "schedule": crontab(minute=30, hour="7-9", day_of_week="mon-fri"), "args": (7,),
        "kwargs": {"kind": "long"}, "options": {"queue": "mail", "priority": 3},
    },
    "clean": {"task": "shop.clean_up", "schedule": timedelta(minutes=10)},
    "seconds": {"task": "shop.clean_up", "schedule": 30.0},
    "at dawn": {"task": "shop.clean_up", "schedule": solar("sunrise", -37.8, 144.9)},
    "quick": {"task": "shop.clean_up", "schedule": 0.5},
    "unknown names": {"task": "elsewhere.task", "schedule": 60, "args": (1,)},
}
"""


@pytest.fixture(scope="module")
def celery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with Celery."""
    directory = tmp_path_factory.mktemp("celery")
    command = [*pip(), "install", "--quiet", "--target", str(directory), "celery[solar]>=5.4,<6"]
    done = subprocess.run(command, env=without_paths(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return directory


def imported(celery: Path, directory: Path, *arguments: str) -> tuple[int, str, str]:
    environment = without_paths() | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(celery)])}
    command = [sys.executable, "-m", "foliot", "import", "celery-beat", *arguments]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_entries_become_jobs_and_the_rest_is_listed(celery: Path, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    code, out, err = imported(celery, tmp_path, "shop", "--yaml")
    jobs: dict[str, Any] = {job["name"]: job for job in yaml.safe_load_all(out)}
    assert code == 1, err
    assert jobs.keys() == {"report-daily", "clean", "seconds"}
    report = jobs["report-daily"]
    assert (report["cron"], report["timezone"], report["queue"]) == ("30 7-9 * * mon-fri", "Europe/Berlin", "mail")
    assert (report["task"], report["payload"]) == ("shop.send_report", {"customer": 7, "kind": "long"})
    assert (jobs["clean"]["every"], jobs["clean"]["retries"]) == ("600s", 5)
    assert jobs["seconds"]["every"] == "30s"
    assert "'at dawn': a schedule of the kind 'solar' has no equal" in err
    assert "'quick': an interval of 0.5 s is not a whole number of seconds" in err
    assert "'unknown names': the names of its 1 positional arguments are unknown" in err
    assert "task shop.unscheduled has no schedule" in err
    assert "priority 3 is left out" in err


def test_an_app_that_can_not_be_imported_is_refused(celery: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module")
    (tmp_path / "plain.py").write_text("x = 1")
    for module, complaint in (
        ("missing", "missing can't be imported: ModuleNotFoundError"),
        ("broken", "No module named 'no_such_module'"),
        ("plain", "plain has no Celery app named app or celery"),
        ("plain:x", "plain has no Celery app named 'x'"),
    ):
        code, out, err = imported(celery, tmp_path, module, "--yaml")
        assert (code, out, complaint in err) == (2, "", True), err
