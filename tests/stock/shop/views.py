from __future__ import annotations

from functools import partial

from django.db import transaction
from django.http import HttpRequest, HttpResponse

from .models import Customer, Order
from .tasks import aadd, add, greet


def sum_up(request: HttpRequest) -> HttpResponse:
    result = add.enqueue(1, 2)
    if "fail" in request.GET:
        raise RuntimeError("on purpose")
    return HttpResponse(result.id)


async def sum_up_later(request: HttpRequest) -> HttpResponse:
    result = await aadd.aenqueue(3, 4)
    return HttpResponse(result.id)


def sum_up_on_commit(request: HttpRequest) -> HttpResponse:
    transaction.on_commit(partial(add.enqueue, 5, 6))
    return HttpResponse()


def welcome(request: HttpRequest) -> HttpResponse:
    return HttpResponse(greet.enqueue(request.user).id)


def order(request: HttpRequest) -> HttpResponse:
    with transaction.atomic():
        made = Order.objects.create(customer=Customer.objects.get(pk=request.user.pk))
        if "fail" in request.GET:
            raise RuntimeError("on purpose")
    return HttpResponse(str(made.pk))
