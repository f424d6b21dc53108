"""Each way in refuses the fields that it can't honour, and names the field."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.errors import Invalid
from foliot.model.job_request import JobRequest
from foliot.submission.restrictions import refuse_in_batch, refuse_without_server

FIELDS = [
    ({"cron": "* * * * *"}, "cron"),
    ({"dependencies": ("a",)}, "dependencies"),
    ({"idempotency_key": "k"}, "idempotency_key"),
]


@pytest.mark.parametrize(("fields", "field"), FIELDS)
@pytest.mark.parametrize("refuse", [refuse_in_batch, refuse_without_server])
def test_a_field_that_needs_more_is_refused(refuse: Any, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid, match=f"^{field}: ") as raised:
        refuse(JobRequest(task="add", **fields))
    assert raised.value.field == field


@pytest.mark.parametrize("refuse", [refuse_in_batch, refuse_without_server])
def test_a_plain_job_passes(refuse: Any) -> None:
    refuse(JobRequest(task="add", delay_seconds=5))
