"""``path("metrics/", include("steady_queue_core.metrics.urls"))``: metrics over HTTP."""

from __future__ import annotations

from django.urls import path

from .views import metrics

urlpatterns = [path("", metrics, name="steady_queue_metrics")]
