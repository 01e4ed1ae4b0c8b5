"""The PostgreSQL dialect keeps what the contract promises."""

from __future__ import annotations

from django.test import TransactionTestCase

from steady_queue_core.dialects.conformance import DialectConformance


class TestPostgreSQLConformance(DialectConformance, TransactionTestCase):
    using = "postgres"
    databases = {"postgres"}
