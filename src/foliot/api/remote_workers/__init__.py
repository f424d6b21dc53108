"""Serves workers that have no access to the database: see docs/worker-protocol.md."""
