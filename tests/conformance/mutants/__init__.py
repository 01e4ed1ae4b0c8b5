"""Broken dialects: each breaks one promise, and the conformance suite must fail for it.

They are the SQLite dialect with one hook replaced. A mutant names the cases that must fail.
"""

from __future__ import annotations

from . import (
    cancellation,
    chains,
    checkpoints,
    claim,
    claim_order,
    clock,
    delivery,
    dispatch,
    enqueue,
    expiry,
    isolation,
    listing,
    locking,
    names,
    permits,
    retention,
    selection,
    semaphores,
    sequels,
    settle,
    settle_and_claim,
    silence,
    text,
    transactions,
    unique,
    upserts,
    wakeup,
)
from .mutant import ALL

__all__ = [
    "ALL",
    "cancellation",
    "chains",
    "checkpoints",
    "claim",
    "claim_order",
    "clock",
    "delivery",
    "dispatch",
    "enqueue",
    "expiry",
    "isolation",
    "listing",
    "locking",
    "names",
    "permits",
    "retention",
    "selection",
    "semaphores",
    "sequels",
    "settle",
    "settle_and_claim",
    "silence",
    "text",
    "transactions",
    "unique",
    "upserts",
    "wakeup",
]
