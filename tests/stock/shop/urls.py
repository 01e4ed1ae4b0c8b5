from __future__ import annotations

from django.urls import path

from . import views

urlpatterns = [
    path("sum/", views.sum_up),
    path("sum-later/", views.sum_up_later),
    path("sum-on-commit/", views.sum_up_on_commit),
    path("welcome/", views.welcome),
    path("order/", views.order),
]
