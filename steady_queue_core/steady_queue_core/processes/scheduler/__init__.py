"""Scheduler process: enqueues recurring tasks when they are due."""

from __future__ import annotations
