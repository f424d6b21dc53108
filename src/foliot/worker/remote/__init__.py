"""The backend of a worker without database access: everything goes to an API server, by docs/worker-protocol.md."""
