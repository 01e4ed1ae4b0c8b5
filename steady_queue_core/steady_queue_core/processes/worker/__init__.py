"""Worker process: claims jobs, runs their tasks and stores the outcomes."""

from __future__ import annotations
