"""The dispatcher: due jobs, old jobs, concurrency limits."""

from __future__ import annotations
