"""Checks declared jobs on the server before any change, so that its errors are reported with those of the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from foliot.cli.job_files import Declared
from foliot.errors import FoliotError, Invalid
from foliot.sdk.client import Client


class ServerCheck:
    """Checks jobs on the server and keeps its answers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._failure: FoliotError | None = None
        self._answers: dict[str, Mapping[str, Any]] = {}

    def check(self, job: Declared, names: Collection[str]) -> None:
        """Raises `Invalid` if the server would reject the job. The job may depend on any of the declared `names`."""
        if self._failure is not None:
            return
        fields = dict(job.source or job.fields)
        if isinstance(fields.get("dependencies"), list):
            fields["dependencies"] = [name for name in fields["dependencies"] if name not in names] or None
        try:
            answer = self._client.check_workflow(fields) if "steps" in fields else self._client.check_job(fields)
        except Invalid:
            raise
        except FoliotError as error:
            # Raised later by `answers`, so that errors in the files are reported first.
            self._failure = error
            return
        self._answers[job.name] = answer.document

    def answers(self) -> Mapping[str, Mapping[str, Any]]:
        """The server's view of each job, by name. Raises the error if the server could not answer."""
        if self._failure is not None:
            raise self._failure
        return self._answers
