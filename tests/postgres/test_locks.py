"""What waits for locks, and what does not."""

from __future__ import annotations

from ..dialects.kept_semaphores import KeptSemaphores
from .cases import PostgresTestCase


class TestKeptSemaphores(KeptSemaphores, PostgresTestCase):
    impatience = ("SET lock_timeout = 300", "RESET lock_timeout")
