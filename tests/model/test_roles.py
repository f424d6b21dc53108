"""The permissions of each role, and the namespaces of a caller."""

from __future__ import annotations

import pytest

from foliot.errors import Forbidden
from foliot.model.namespace import Namespace
from foliot.model.roles import ALLOWED, EVERYWHERE, LOCAL, Caller, Permission, Role, home_of, within


def test_roles_contain_each_other() -> None:
    assert ALLOWED[Role.VIEWER] < ALLOWED[Role.SUBMITTER] < ALLOWED[Role.WORKER] < ALLOWED[Role.ADMIN]
    assert ALLOWED[Role.SUBMITTER] < ALLOWED[Role.OPERATOR] < ALLOWED[Role.ADMIN]
    # Claiming runs is for workers: an operator's token on a terminal must not take jobs by mistake.
    assert ALLOWED[Role.WORKER] - ALLOWED[Role.OPERATOR] == {Permission.WORK}
    assert not any(Permission.ADMINISTER in ALLOWED[role] for role in Role if role is not Role.ADMIN)


def test_a_caller_acts_in_one_namespace() -> None:
    team = Caller("ci", Role.VIEWER, "team", Namespace("team"))
    assert home_of("team") == within(team, "team") == Namespace("team")
    with pytest.raises(Forbidden, match="for the namespace 'team'"):
        within(team, "other")
    assert home_of(EVERYWHERE) == LOCAL.namespace == Namespace("default")
    assert within(LOCAL, "other") == Namespace("other")
