"""``python -m steady_queue_core``: the same as the console script ``steady-queue``."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
