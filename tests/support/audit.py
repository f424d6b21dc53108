"""Audit entries like those of a request that creates a job."""

from __future__ import annotations

from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.audit_log import AuditEntry


def entry_for(run: NewRun) -> AuditEntry:
    return AuditEntry(
        id=new_id(),
        actor="ci",
        actor_namespace=None,
        token_id=None,
        role=None,
        namespace="default",
        address=None,
        request_id="r",
        method="POST",
        path="/v1/jobs",
        action="create_job",
        target=str(run.id),
        status=201,
        code=None,
    )
