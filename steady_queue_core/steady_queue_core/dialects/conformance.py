"""The former address of ``steady_queue_core.conformance``, for third-party dialects."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    warnings.warn(
        "steady_queue_core.dialects.conformance is steady_queue_core.conformance now.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(import_module("steady_queue_core.conformance"), name)
