"""Schedules: what a recurring task is, when it is due, and how it is stored."""

from __future__ import annotations
