"""Schedules: what a recurring task is, when it is due, and how it is stored.

Enqueueing their runs is in ``processes/scheduler``.
"""

from __future__ import annotations
