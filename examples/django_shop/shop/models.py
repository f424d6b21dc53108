"""The orders."""

from django.db import models


class Order(models.Model):
    customer = models.CharField(max_length=100)
    cents = models.PositiveIntegerField()
    sent = models.PositiveIntegerField("invoices sent", default=0)

    def __str__(self) -> str:
        return f"order {self.pk} of {self.customer}"
