"""The worker: claims jobs, runs them, and stores what became of them."""

from __future__ import annotations
