"""The Python SDK. Importing it loads no server libraries."""
