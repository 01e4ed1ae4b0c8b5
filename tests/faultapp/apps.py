from __future__ import annotations

from django.apps import AppConfig


class FaultAppConfig(AppConfig):
    name = "tests.faultapp"
    label = "faultapp"

    def ready(self) -> None:
        from . import mutants

        mutants.install()
