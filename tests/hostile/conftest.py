"""The application of the API tests, for tests that need no process."""

from tests.api.conftest import app, client

__all__ = ["app", "client"]
