"""Each problem of an installation is a finding, and usual states are not."""

from __future__ import annotations

import pytest

from foliot.cli.doctor.findings import Export, Picture, Queue, findings_on

WELL = Picture(schedulers=1, unowned_shards=0, workers=1)


def test_an_installation_that_is_well_has_no_findings() -> None:
    assert list(findings_on(WELL)) == []


@pytest.mark.parametrize(
    ("picture", "severity", "text"),
    [
        (Picture(schedulers=0, unowned_shards=100, workers=1), "problem", "No scheduler node is alive"),
        (Picture(schedulers=1, unowned_shards=3, workers=1), "problem", "3 of the shards belong to no scheduler node"),
        (Picture(schedulers=1, unowned_shards=0, workers=0), "problem", "No worker is alive"),
        (Picture(1, 0, 1, [Queue("mail", 5, 1.0, 0, False)]), "problem", "No worker serves the queue mail"),
        (Picture(1, 0, 1, [Queue("mail", 5, 1.0, 1, True)]), "notice", "The queue mail is paused, and 5 jobs wait"),
        (Picture(1, 0, 1, [Queue("mail", 5, 61.0, 1, False)]), "notice", "has been due for 61 seconds"),
        (Picture(1, 0, 1, outdated=["host:1"]), "notice", "host:1 is older than the schema"),
        (Picture(1, 0, 1, exports=[Export("traces", True, 600.0)]), "problem", "traces is 10 minutes behind"),
        (Picture(1, 0, 1, archive_errors=["s3://b is away"]), "problem", "does not take history: s3://b is away"),
        (Picture(1, 0, 1, exports=[Export("statsd", False, 600.0)]), "notice", "Nobody sends the export statsd"),
    ],
)
def test_each_trouble_is_found(picture: Picture, severity: str, text: str) -> None:
    (found,) = findings_on(picture)
    assert found.severity == severity
    assert text in found.text
    assert found.action


@pytest.mark.parametrize(
    "picture",
    [
        Picture(1, 0, 1, [Queue("mail", 0, 0.0, 0, False), Queue("old", 0, 0.0, 0, True)]),
        Picture(1, 0, 1, [Queue("mail", 5, 59.0, 1, False)]),
        Picture(1, 0, 1, exports=[Export("traces", True, 5.0)]),
    ],
)
def test_usual_states_are_no_findings(picture: Picture) -> None:
    assert list(findings_on(picture)) == []
