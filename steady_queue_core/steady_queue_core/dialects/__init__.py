"""Dialects: the operations of the queue, as each database does them best.

This is the only package of the core that a plugin imports. ``hookspecs`` has the contract, and
``portable`` building blocks that need nothing but Django. ``steady_queue_core.conformance`` has the
tests that a dialect must pass.
"""

from __future__ import annotations

from ..errors import (
    DialectConflict,
    DialectError,
    DialectInvalid,
    DialectNotFound,
    DialectUnsupported,
)
from ..features.batches.link import Link
from ..features.concurrency.stored import Limit
from ..features.fair.key import FairKey
from ..features.fair.of_database import fair_queues_in
from ..features.rates.stored import JobRate
from ..features.storable import is_storable
from ..features.unique.key import JobKey
from ..logging import get_logger
from . import portable, tables
from .chains import Chain, chained, chains_of
from .dialect import Dialect
from .held_rows import STEP_COLUMNS, CheckpointChange, HeldRow, HeldTable, StepRecord
from .hookspecs import hookimpl
from .joins import BatchClosed, Joins
from .membership import DependencyState, MemberState, RunWhen
from .observation import INFO, PROBLEM, WARNING, Observation, observed, rows_of
from .outcome import Destination, Ending, Outcome, limited_keys
from .queue_selector import QueueSelector
from .records import (
    API_VERSION,
    CLAIM_COLUMNS,
    EXECUTION_COLUMNS,
    JOB_COLUMNS,
    Arrival,
    ClaimedJob,
    DialectInfo,
    Dispatched,
    EnqueuedJob,
    Level,
    NewJob,
    ProcessIdentity,
    Refused,
    TurnKey,
    TurnRow,
    Wakeup,
)
from .registry import dialect_for
from .sequel import FollowUp, Sequel
from .unique_enqueue import KeyTaken

__all__ = [
    "API_VERSION",
    "CLAIM_COLUMNS",
    "EXECUTION_COLUMNS",
    "INFO",
    "JOB_COLUMNS",
    "PROBLEM",
    "STEP_COLUMNS",
    "WARNING",
    "Arrival",
    "BatchClosed",
    "Chain",
    "CheckpointChange",
    "ClaimedJob",
    "DependencyState",
    "Destination",
    "Dialect",
    "DialectConflict",
    "DialectError",
    "DialectInfo",
    "DialectInvalid",
    "DialectNotFound",
    "DialectUnsupported",
    "Dispatched",
    "Ending",
    "EnqueuedJob",
    "FairKey",
    "FollowUp",
    "HeldRow",
    "HeldTable",
    "JobKey",
    "JobRate",
    "Joins",
    "KeyTaken",
    "Level",
    "Limit",
    "Link",
    "MemberState",
    "NewJob",
    "Observation",
    "Outcome",
    "ProcessIdentity",
    "QueueSelector",
    "Refused",
    "RunWhen",
    "Sequel",
    "StepRecord",
    "TurnKey",
    "TurnRow",
    "Wakeup",
    "chained",
    "chains_of",
    "dialect_for",
    "fair_queues_in",
    "get_logger",
    "hookimpl",
    "is_storable",
    "limited_keys",
    "observed",
    "portable",
    "rows_of",
    "tables",
]
