"""Dispatcher process: due jobs, semaphores and retention."""

from __future__ import annotations
