"""The headers that a job may set on its requests."""

from __future__ import annotations

import pytest

from foliot.model.http_headers import OURS, check_headers


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer x"}, {"X-A": ""}, {"x": "v" * 8000}])
def test_ordinary_headers_are_accepted(headers: dict[str, str]) -> None:
    check_headers(headers)


@pytest.mark.parametrize("name", [*sorted(OURS), "Host", "PROXY-Authorization", "", "a b", "a\r\nb", "x" * 201])
def test_headers_that_frame_or_route_a_message_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="can't be set"):
        check_headers({name: "v"})


@pytest.mark.parametrize("value", ["a\r\nHost: evil", "\0", "v" * 8001, "\u20ac"])
def test_a_value_that_no_header_may_hold_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="`headers`"):
        check_headers({"x-a": value})
