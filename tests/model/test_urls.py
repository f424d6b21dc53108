"""The URLs that a task may name."""

from __future__ import annotations

import pytest

from foliot.model.urls import check_url


@pytest.mark.parametrize("url", ["http://example.org", "HTTPS://example.org:8443/a?b#c", "http://[::1]/"])
def test_http_urls_are_accepted(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://a:b@example.org",
        "http://a@example.org",
        "http://example.org:port",
        "http://[::1",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^`url`: "):
        check_url(url)
