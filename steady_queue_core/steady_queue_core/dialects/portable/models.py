"""The models, for building blocks: the package of the models stands above this one."""

from __future__ import annotations

from typing import Any

from django.apps import apps


def model(name: str) -> Any:
    """Return a model of Steady Queue by its class name."""
    return apps.get_model("steady_queue", name)
