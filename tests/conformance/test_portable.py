"""The portable building blocks keep what the contract promises, with nothing tuned."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

from steady_queue_core.conformance import DialectConformance
from steady_queue_core.dialects.registry import override

from .aliases import second_alias
from .plugins import plugin, registry_of
from .portable_dialect import HOOKS


class TestPortableConformance(DialectConformance, TransactionTestCase):
    using = "portable"
    databases = {"default", "portable"}
    hooks: ClassVar[dict[str, Any]] = HOOKS

    @classmethod
    def setUpClass(cls) -> None:
        # Django's own transactions are safe for the queue where they lock from the beginning.
        options = {"transaction_mode": "IMMEDIATE", "timeout": 20}
        cls.enterClassContext(second_alias("default", cls.using, **options))
        cls.enterClassContext(override(registry_of(plugin("portable", cls.hooks))))
        super().setUpClass()

    def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 100")
