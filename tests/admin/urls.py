"""Two admin sites: Django's own, and one of a project that registers the pages itself."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from steady_queue_core.admin import register

operations = admin.AdminSite(name="operations")
register(operations)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("operations/", operations.urls),
]
