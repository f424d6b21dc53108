"""Foliot in Django: tasks that use models, jobs inside Django's transactions, and `manage.py foliot`.

    # shop/tasks.py
    from foliot.integrations.django import App
    from shop.models import Order

    app = App()

    @app.task
    def send_invoice(order_id: int) -> None:
        Order.objects.get(pk=order_id).send_invoice()

    # shop/views.py
    with transaction.atomic():
        order = Order.objects.create(...)
        send_invoice.submit_in(connection, order_id=order.pk)

`manage.py foliot worker` sets Django up. For `foliot worker` and `foliot up`, a module does so before it imports the
tasks:

    # shop/worker.py
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
    django.setup()
    from shop.tasks import app
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from foliot.sdk import app as sdk


class App(sdk.App):
    """A `foliot.App` whose tasks use Django's database connections as requests do.

    Connections that are broken or older than CONN_MAX_AGE are closed before and after each attempt.
    """

    def around(self, function: sdk.Function) -> sdk.Function:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def with_connections_async(*args: Any, **kwargs: Any) -> Any:
                await sync_to_async(close_old_connections)()
                try:
                    return await function(*args, **kwargs)
                finally:
                    await sync_to_async(close_old_connections)()

            return with_connections_async

        @functools.wraps(function)
        def with_connections(*args: Any, **kwargs: Any) -> Any:
            close_old_connections()
            try:
                return function(*args, **kwargs)
            finally:
                close_old_connections()

        return with_connections
