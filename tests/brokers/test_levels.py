"""Names of queues at brokers."""

from __future__ import annotations

import re

from foliot.brokers.levels import safe_name


def test_different_queues_have_different_names() -> None:
    queues = ["a/b", "a.b", "a_b", "a-b", "a_2fb", "a__b", "ä"]
    names = {safe_name(queue) for queue in queues}
    assert len(names) == len(queues)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in names)


def test_a_long_name_is_cut_and_still_differs() -> None:
    queues = ["q" * 30, "q" * 31, "/" * 30, "/" * 31, "q" * 5 + "_" * 9]
    names = [safe_name(queue, 23) for queue in queues]
    assert len(set(names)) == len(queues)
    assert all(len(name) <= 23 and re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in names)
    assert safe_name("default", 23) == "default"
