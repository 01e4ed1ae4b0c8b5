"""Keeps what error trackers do to the whole process within the tests of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

#: Methods of loggers that Sentry replaces when it is first set up, and never again.
METHODS = ("callHandlers",)
_original = {name: getattr(logging.Logger, name) for name in METHODS}
_replaced: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def loggers_as_they_were() -> Iterator[None]:
    """Others ask whether somebody has replaced these methods."""
    for name, method in _replaced.items():
        setattr(logging.Logger, name, method)
    yield
    for name, method in _original.items():
        if (present := getattr(logging.Logger, name)) is not method:
            _replaced[name] = present
            setattr(logging.Logger, name, method)
