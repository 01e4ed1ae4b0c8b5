from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings


class FaultAppConfig(AppConfig):
    name = "tests.faultapp"
    label = "faultapp"

    def ready(self) -> None:
        from . import mutants

        mutants.install()
        for path, value in getattr(settings, "FAULTAPP_CONSTANTS", {}).items():
            module, _, name = path.rpartition(".")
            assert hasattr(import_module(module), name), path
            setattr(import_module(module), name, value)
