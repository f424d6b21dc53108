"""The tasks of the shop."""

from django.db.models import F

from foliot.integrations.django import App
from shop.models import Order

app = App()


@app.task(queue="mail", retries=5)
def send_invoice(order_id: int) -> str:
    order = Order.objects.get(pk=order_id)
    Order.objects.filter(pk=order_id).update(sent=F("sent") + 1)
    return f"invoice over {order.cents / 100:.2f} sent to {order.customer}"
