"""The pages of the shop."""

from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from shop.models import Order
from shop.tasks import send_invoice


# A shop with a form leaves the protection on. This one is called by curl.
@csrf_exempt
@require_POST
def create(request: HttpRequest) -> JsonResponse:
    with transaction.atomic():
        order = Order.objects.create(customer=request.POST["customer"], cents=int(request.POST["cents"]))
        job = send_invoice.submit_in(connection, order_id=order.pk)
    return JsonResponse({"order": order.pk, "job": job.id}, status=201)


def show(request: HttpRequest, order_id: int) -> JsonResponse:
    order = get_object_or_404(Order, pk=order_id)
    return JsonResponse({"customer": order.customer, "sent": order.sent})
