from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class FaultAppConfig(AppConfig):
    name = "tests.faultapp"
    label = "faultapp"

    def ready(self) -> None:
        from . import mutants

        mutants.install()
        if (grace := getattr(settings, "FAULTAPP_GRACE", None)) is not None:
            from steady_queue_core.processes.supervisor import maintenance

            maintenance.HEARTBEAT_GRACE = grace
