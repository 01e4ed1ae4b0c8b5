"""The conformance suite: what a dialect promises is tested here, or it is not promised.

A dialect's own tests are these lines; they run under ``manage.py test`` and pytest alike::

    from django.test import TransactionTestCase
    from steady_queue_core.dialects.conformance import DialectConformance

    class CockroachConformance(DialectConformance, TransactionTestCase):
        databases = {"default"}

``using`` names another alias than ``default``; add it to ``databases`` too. The test database must
be one that other threads and processes can open: SQLite needs a file, named in ``TEST["NAME"]``.
Threads, processes and locks are real. Nothing sleeps to win a race: what has to happen is waited
for, at most ``patience`` seconds. Cases are left out only where ``DialectInfo`` says that the
dialect does not promise them.
"""

from __future__ import annotations

from .checks import CheckCases
from .claim import ClaimCases
from .claim_order import ClaimOrderCases
from .claim_sharing import ClaimSharingCases
from .clock import ClockCases
from .dispatch import DispatchCases
from .enqueue import EnqueueCases
from .errors import ErrorCases
from .isolation import IsolationCases
from .listing import ListingCases
from .locking import LockingCases
from .names import NameCases
from .permits import PermitCases
from .selection import SelectionCases
from .semaphores import SemaphoreCases
from .settle import SettleCases
from .settle_and_claim import SettleAndClaimCases
from .settle_fence import SettleFenceCases
from .silence import SilenceCases
from .text import TextCases
from .transactions import TransactionCases
from .upserts import UpsertCases
from .wakeup import WakeupCases

__all__ = ["DialectConformance"]


class DialectConformance(
    SelectionCases,
    TransactionCases,
    LockingCases,
    ErrorCases,
    EnqueueCases,
    ClaimCases,
    ClaimOrderCases,
    ClaimSharingCases,
    SettleCases,
    SettleFenceCases,
    SettleAndClaimCases,
    DispatchCases,
    ListingCases,
    NameCases,
    TextCases,
    UpsertCases,
    PermitCases,
    SemaphoreCases,
    ClockCases,
    WakeupCases,
    SilenceCases,
    CheckCases,
    IsolationCases,
):
    """Every case, to be mixed into a ``TransactionTestCase``."""
