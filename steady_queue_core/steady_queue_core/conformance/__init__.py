"""The conformance suite: the tests of everything that a dialect promises.

These lines run it for a dialect, under ``manage.py test`` or pytest::

    from django.test import TransactionTestCase
    from steady_queue_core.conformance import DialectConformance

    class CockroachConformance(DialectConformance, TransactionTestCase):
        databases = {"default"}

Set ``using`` to test another alias than ``default``, and add it to ``databases``. Other threads and
processes must be able to open the test database: SQLite needs a file, named in ``TEST["NAME"]``.
Threads, processes and locks are real. No case sleeps to win a race: it waits until something has
happened, for at most ``patience`` seconds. Cases are skipped only where ``DialectInfo`` says that
the dialect does not promise them.
"""

from __future__ import annotations

from .atomicity import AtomicityCases
from .batches import BatchCases
from .cancellation import CancellationCases
from .chains import ChainCases
from .checkpoints import CheckpointCases
from .checks import CheckCases
from .claim import ClaimCases
from .claim_order import ClaimOrderCases
from .claim_sharing import ClaimSharingCases
from .clock import ClockCases
from .delivery import DeliveryCases
from .dispatch import DispatchCases
from .enqueue import EnqueueCases
from .errors import ErrorCases
from .expiry import ExpiryCases
from .isolation import IsolationCases
from .listing import ListingCases
from .locking import LockingCases
from .names import NameCases
from .permits import PermitCases
from .retention import RetentionCases
from .selection import SelectionCases
from .semaphores import SemaphoreCases
from .sequels import SequelCases
from .settle import SettleCases
from .settle_and_claim import SettleAndClaimCases
from .settle_fence import SettleFenceCases
from .settle_members import SettleMembersCases
from .silence import SilenceCases
from .steps import StepCases
from .text import TextCases
from .transactions import TransactionCases
from .turns import TurnCases
from .unique import UniqueKeyCases
from .upserts import UpsertCases
from .wakeup import WakeupCases

__all__ = ["DialectConformance"]


class DialectConformance(
    SelectionCases,
    TransactionCases,
    AtomicityCases,
    TurnCases,
    LockingCases,
    ErrorCases,
    EnqueueCases,
    ClaimCases,
    ClaimOrderCases,
    ClaimSharingCases,
    SettleCases,
    SettleFenceCases,
    SettleAndClaimCases,
    SequelCases,
    DeliveryCases,
    DispatchCases,
    ListingCases,
    NameCases,
    TextCases,
    UpsertCases,
    PermitCases,
    SemaphoreCases,
    ChainCases,
    CancellationCases,
    ExpiryCases,
    RetentionCases,
    CheckpointCases,
    StepCases,
    SettleMembersCases,
    BatchCases,
    UniqueKeyCases,
    ClockCases,
    WakeupCases,
    SilenceCases,
    CheckCases,
    IsolationCases,
):
    """All cases, a mixin for ``TransactionTestCase``."""
