"""The application of the API's own tests, for what needs no process."""

from tests.api.conftest import app, client

__all__ = ["app", "client"]
