"""What the features have to say while jobs are at work."""

from __future__ import annotations

from .expiry.refusal import REFUSALS as EXPIRY
from .refusal import Refusal

REFUSALS: tuple[Refusal, ...] = EXPIRY
