"""Submission: the path from a job that somebody asks for to a run or a recurring job in the database.

1. Check: the request is decoded (`model/job_request.py`), and fits its way in (`restrictions.py`, `storable_json.py`).
2. Complete: its task must be known and enabled, and gives the queue and tags (`known_tasks.py`); a version of the
   task must take the payload (`payload_checks.py`, `task_versions.py`); the steps of a
   workflow too (`workflow_definitions.py`), the jobs it depends on (`dependencies.py`), its calendar (`calendars.py`).
3. Accept: `admission.py` makes it a run or a recurring job, and refuses runs for a full queue (`back_pressure.py`).
4. Store: alone or with its unique key (`storage.py`), or with the runs that arrive meanwhile (`batcher.py`).
5. Announce: after the commit, hints wake workers and schedulers (`announcement.py`).

The API server and the SDK straight at the database walk this path. Workers take steps 2 and 5 for the workflows and
maps that they expand. The SQL function `foliot.submit` is the same path in SQL; the SDK checks a job first.
"""
