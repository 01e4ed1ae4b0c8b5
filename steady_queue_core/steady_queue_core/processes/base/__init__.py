"""What every process of the queue is made of."""

from __future__ import annotations
