"""URLs of a project that shows its metrics."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("metrics/", include("steady_queue_core.metrics.urls"))]
