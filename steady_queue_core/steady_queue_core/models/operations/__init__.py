"""What can be done with many jobs at once, and with what they leave."""

from __future__ import annotations
