"""The tasks of `tasks.py` that need no database: workers that reach only an API server run them."""

from __future__ import annotations

import foliot
from tests.chaos import tasks

NEED_DATABASE = frozenset({"pay", "durable"})
"""Their effects are transactions."""
app = foliot.App()
app.tasks = {name: task for name, task in tasks.app.tasks.items() if name not in NEED_DATABASE}
