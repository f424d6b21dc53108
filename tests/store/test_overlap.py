"""The overlap policies, as the database decides them for each tick."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from foliot.model.overlap import Overlap

BUFFER_MAX = 3
VERDICTS: dict[str, tuple[str | None, ...]] = {
    # With no, one, two or three runs of the job waiting already.
    "skip": (None, None, None, None),
    "buffer_one": ("held", None, None, None),
    "buffer_all": ("held", "held", "held", None),
    "cancel_other": ("held", "held", "held", "held"),
    "terminate_other": ("ready", "ready", "ready", "ready"),
    "allow_all": ("ready", "ready", "ready", "ready"),
}


async def verdict(sql: Any, policy: str, *, is_blocked: bool, waiting: int) -> str | None:
    found: str | None = await sql.fetchval(
        "select foliot.overlap_verdict($1, $2, $3, $4)", policy, is_blocked, waiting, BUFFER_MAX
    )
    return found


def test_every_policy_has_expected_verdicts() -> None:
    assert set(VERDICTS) == set(get_args(Overlap))


@pytest.mark.parametrize("policy", VERDICTS)
async def test_a_live_run_decides_by_the_policy(sql: Any, policy: str) -> None:
    found = [await verdict(sql, policy, is_blocked=True, waiting=waiting) for waiting in range(BUFFER_MAX + 1)]
    assert tuple(found) == VERDICTS[policy]


@pytest.mark.parametrize("policy", VERDICTS)
async def test_without_a_live_run_each_policy_fires(sql: Any, policy: str) -> None:
    assert await verdict(sql, policy, is_blocked=False, waiting=0) == "ready"
