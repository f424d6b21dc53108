"""The admin of the shop."""

from django.contrib import admin, messages
from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from shop.models import Order
from shop.tasks import send_invoice


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ("id", "customer", "cents", "sent")
    actions = ("send_again",)

    @admin.action(description="Send the invoices again")
    def send_again(self, request: HttpRequest, orders: QuerySet[Order]) -> None:
        with transaction.atomic():
            for order in orders:
                send_invoice.submit_in(connection, order_id=order.pk)
        self.message_user(request, f"{len(orders)} invoices are on their way", messages.SUCCESS)
