"""A real server, for web applications that submit over HTTP."""

from tests.sdk.conftest import server_url

__all__ = ["server_url"]
