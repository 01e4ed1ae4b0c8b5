from __future__ import annotations

from django.test import TransactionTestCase

from steady_queue_core.conformance import DialectConformance


class TestPlainPostgres(DialectConformance, TransactionTestCase):
    databases = {"default"}
