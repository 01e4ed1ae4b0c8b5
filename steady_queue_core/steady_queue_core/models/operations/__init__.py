"""Operations on many jobs, and maintenance of their tables."""

from __future__ import annotations
