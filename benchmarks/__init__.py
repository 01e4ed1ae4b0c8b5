"""Measures Steady Queue, other queues, and a loop without a framework.

``python -m benchmarks`` from the root of the repository prints one table. README.md says what it
means.
"""

from __future__ import annotations
