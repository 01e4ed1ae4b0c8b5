"""The outcomes that one statement stores, as its parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import attrgetter

from steady_queue_core.dialects import Destination, Ending, Outcome, limited_keys

from .arrays import array
from .clock import to_text
from .settle_sql import Part

#: What the outcomes of a worker mostly have in common.
_NAMES = ("attempts", "worker_ids", "errors", "preserve")
_SHARED = attrgetter("ending", *_NAMES)

#: The parts that move jobs whose rows were updated to where they go.
MOVES = {
    Destination.FAILED: Part.FAILED,
    Destination.SCHEDULED: Part.SCHEDULED,
    Destination.READY: Part.READY,
    # Its permit has ended, so that it can only take a new one.
    Destination.READY_OR_BLOCKED: Part.BLOCKED,
}


class Batch:
    """The outcomes of one statement: the parts that they need, and its parameters."""

    def __init__(self, outcomes: Sequence[Outcome], *, ends_members: bool = False) -> None:
        alike = are_alike(outcomes)
        some = outcomes[:1] if alike else outcomes
        #: The concurrency keys of the jobs.
        self.keys = limited_keys(outcomes)
        self.parts = frozenset(part for outcome in some for part in _parts(outcome))
        if alike:
            self.parts |= {Part.ALIKE}
        self.values = _arrays(outcomes) if alike else {"outcomes": _to_json(outcomes)}
        if ends_members:
            self.parts |= {Part.MEMBERS}
            self.values |= _members(outcomes, alike=alike)

    @property
    def any_returns_to_ready(self) -> bool:
        """Whether one of the jobs may be claimed again at once."""
        return not self.parts.isdisjoint({Part.RELEASED, Part.READY})

    @property
    def any_is_blocked(self) -> bool:
        """Whether one of the jobs may wait for a permit from now on."""
        return not self.parts.isdisjoint({Part.BLOCKED, Part.RELEASED_BLOCKED})


def held_ids(found: str | None) -> set[int] | None:
    """Return the ids that a statement returns as ``held``; ``None`` if it has changed nothing."""
    ids = json.loads(found or "[]")
    return None if ids is None else set(ids)


def _parts(outcome: Outcome) -> Iterator[Part]:
    if outcome.ending is Ending.RELEASED:
        yield Part.RELEASED
        if outcome.is_limited:
            yield Part.RELEASED_BLOCKED
        return
    yield Part.DELETED if outcome.deletes_job else Part.UPDATED
    if outcome.destination in MOVES:
        yield MOVES[outcome.destination]
    if outcome.ends_permit:
        yield Part.PERMITS
        if outcome.heir is not None:
            yield Part.HEIRS


def are_alike(outcomes: Sequence[Outcome]) -> bool:
    """Return whether the jobs have finished in like manner, as most do: in their first attempt, on
    one worker, and without a limit."""
    first = outcomes[0] if outcomes else None
    if first is None or first.ending is not Ending.FINISHED:
        return False
    shared = _SHARED(first)
    return all(
        outcome.started_at is outcome.last_attempted_at
        and outcome.concurrency_key is None
        and _SHARED(outcome) == shared
        for outcome in outcomes
    )


def _arrays(outcomes: Sequence[Outcome]) -> dict[str, object]:
    return {
        **dict(zip(_NAMES, _SHARED(outcomes[0])[1:], strict=True)),
        "job_ids": array(outcome.job_id for outcome in outcomes),
        "tokens": array(outcome.token for outcome in outcomes),
        "started": array(_seconds(outcome.started_at) for outcome in outcomes),
        "return_values": array(outcome.return_value for outcome in outcomes),
    }


def _members(outcomes: Sequence[Outcome], *, alike: bool) -> dict[str, object]:
    ended = [outcome for outcome in outcomes if outcome.ends_member]
    values: dict[str, object] = {"member_jobs": array(outcome.job_id for outcome in ended)}
    if not alike:
        values["member_states"] = array(int(outcome.member_state) for outcome in ended)
    return values


def _seconds(instant: datetime | None) -> float | None:
    return None if instant is None else instant.timestamp()


def _to_json(outcomes: Sequence[Outcome]) -> str:
    return json.dumps([_given(outcome) for outcome in outcomes])


def _given(outcome: Outcome) -> dict[str, object]:
    given: dict[str, object] = {
        "job_id": outcome.job_id,
        "token": outcome.token,
        "ending": outcome.ending.value,
    }
    if outcome.is_limited:
        given["concurrency_key"] = outcome.concurrency_key
        if outcome.heir is not None:
            given["heir"], given["heir_token"] = outcome.heir
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
        if outcome.fingerprint is not None:
            given["fingerprint"] = outcome.fingerprint
    if outcome.ending is not Ending.RELEASED:
        attempted_at = to_text(outcome.last_attempted_at)
        given["attempts"] = outcome.attempts
        given["worker_ids"] = outcome.worker_ids
        given["errors"] = outcome.errors
        given["last_attempted_at"] = attempted_at
        # The same instant for a first attempt, and so for most.
        first = outcome.started_at is outcome.last_attempted_at
        given["started_at"] = attempted_at if first else to_text(outcome.started_at)
    return given
