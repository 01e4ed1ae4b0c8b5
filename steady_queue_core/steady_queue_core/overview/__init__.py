"""The overview: what one page tells of a queue, read by a few bounded queries.

A page makes eight queries, of bounded cost; what several queries ask of one kind of thing goes into
one statement. Nothing here knows of HTTP or HTML.
"""

from __future__ import annotations

from .overview import Overview
from .scope import WINDOWS, Scope, Window

__all__ = ["WINDOWS", "Overview", "Scope", "Window"]
