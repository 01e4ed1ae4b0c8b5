"""``steady-queue demo``: a throw-away project whose tasks run in real processes, and a verdict.

The project is made by Django's own ``startproject`` and gets the settings that the README names.
Its supervisor is a process of its own. What is printed, and what is judged in the end, comes from
the queue's tables and from a file that the tasks write to, never from what was asked for.
"""

from __future__ import annotations

from .run import run
from .serving import serve

__all__ = ["run", "serve"]
