"""Asks the server what each declared job would become, before anything is done. Its refusals are told beside the other
faults of a file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from foliot.cli.job_files import Declared
from foliot.errors import FoliotError, Invalid
from foliot.sdk.client import Client


class Checker:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._trouble: FoliotError | None = None
        self._answers: dict[str, Mapping[str, Any]] = {}

    def look(self, job: Declared, names: Collection[str]) -> None:
        """Raises `Invalid` for what the server would refuse. `names` are those of all declared jobs: on these it may
        depend."""
        if self._trouble is not None:
            return
        fields = dict(job.said or job.fields)
        if isinstance(fields.get("dependencies"), list):
            fields["dependencies"] = [name for name in fields["dependencies"] if name not in names] or None
        try:
            answer = self._client.check_workflow(fields) if "steps" in fields else self._client.check_job(fields)
        except Invalid:
            raise
        except FoliotError as error:
            # Told later: what is wrong with the files can be told all the same.
            self._trouble = error
            return
        self._answers[job.name] = answer.document

    def answers(self) -> Mapping[str, Mapping[str, Any]]:
        """What each job would become, by its name. Raises whatever kept the server from answering."""
        if self._trouble is not None:
            raise self._trouble
        return self._answers
