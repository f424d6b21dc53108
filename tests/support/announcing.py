"""Announces the tasks of an app as a worker does when it starts, without a worker."""

from __future__ import annotations

from uuid import UUID

import foliot
from foliot.config import Config
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.store.store import Store
from foliot.worker.announcement import OwnAnnouncement
from foliot.worker.known_tasks import queues_of_tasks


async def announce(store: Store, app: foliot.App, *, namespace: str = "default") -> UUID:
    """Returns the id of the worker, which lives until it is removed or its lease expires."""
    space, worker_id = Namespace(namespace), new_id()
    said, queues = OwnAnnouncement(app, space), queues_of_tasks(app, Config(), space)
    await store.announcements.put_announcement(said.hash, said.text)
    tags = {space.qualified(task.name): task.options.tags for task in app.tasks.values() if task.options.tags}
    await store.workers.announce_tasks(queues, tags=tags, announcement=said.hash)
    slots = {space.qualified("default"): 1}
    await store.workers.register_worker(worker_id, "a worker", slots, sorted(queues), announcement=said.hash)
    return worker_id
