"""The overview: what one page tells of a queue, read by a few bounded queries."""

from __future__ import annotations

from .overview import Overview
from .scope import Scope
from .window import WINDOWS, Window

__all__ = ["WINDOWS", "Overview", "Scope", "Window"]
