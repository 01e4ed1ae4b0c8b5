"""Ending claims: one statement, however many outcomes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Ending, Outcome

from .clock import to_text
from .permits import admit_locked, create, lock
from .prepared import fetch
from .settle_sql import Move, moves_of, statement
from .transactions import planned_transaction


def settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    if not outcomes:
        return set()
    keys = limited_keys(outcomes)
    if not keys:
        return _settle(connection, outcomes)[0]
    with planned_transaction(connection):
        missing = keys - lock(connection, keys)
        held, waits = _settle(connection, outcomes)
        if waits or any_is_blocked(outcomes):
            create(connection, missing)
            admit_locked(connection, keys)
    return held


def _settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> tuple[set[int], bool]:
    """End claims; return which were held, and whether a job waits for a permit that has ended."""
    values = {"outcomes": to_json(outcomes)}
    [(held, waits)] = fetch(connection, statement(moves_of(outcomes)), values)
    return set(json.loads(held)) if held else set(), waits


def to_json(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as the statements take them."""
    return json.dumps([_given(outcome) for outcome in outcomes])


def any_returns_to_ready(outcomes: Sequence[Outcome]) -> bool:
    """Whether a job may be claimed again at once."""
    return not moves_of(outcomes).isdisjoint({Move.RELEASED, Move.READY})


def any_is_blocked(outcomes: Sequence[Outcome]) -> bool:
    """Whether a job of these may wait for a permit from now on."""
    return not moves_of(outcomes).isdisjoint({Move.BLOCKED, Move.KEPT_OUT})


def limited_keys(outcomes: Sequence[Outcome]) -> set[str]:
    """Return the keys of the permits that are held for the claims."""
    return {outcome.concurrency_key for outcome in outcomes if outcome.concurrency_key is not None}


def _given(outcome: Outcome) -> dict[str, object]:
    given: dict[str, object] = {
        "job_id": outcome.job_id,
        "token": outcome.token,
        "ending": outcome.ending.value,
    }
    if outcome.concurrency_key is not None:
        given["concurrency_key"] = outcome.concurrency_key
    if outcome.ending is Ending.FINISHED:
        given["preserve"] = outcome.preserve
        given["return_value"] = outcome.return_value
    else:
        given |= {
            "queue_name": outcome.queue_name,
            "rank": outcome.rank,
            "delay": round(outcome.delay * 1_000_000),
            "return_value": outcome.return_value,
            "exception_class": outcome.exception_class,
            "message": outcome.message,
        }
    if outcome.ending is not Ending.RELEASED:
        attempted_at = to_text(outcome.last_attempted_at)
        given["attempts"] = outcome.attempts
        given["worker_ids"] = outcome.worker_ids
        given["errors"] = outcome.errors
        given["last_attempted_at"] = attempted_at
        # Of a first attempt, and so of most, they are one.
        first = outcome.started_at is outcome.last_attempted_at
        given["started_at"] = attempted_at if first else to_text(outcome.started_at)
    return given
