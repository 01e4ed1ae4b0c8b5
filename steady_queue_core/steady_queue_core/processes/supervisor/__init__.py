"""The supervisor: starts the others, watches, and recovers."""

from __future__ import annotations
