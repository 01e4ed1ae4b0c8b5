"""The starts of jobs with rate limits: asked for after the claim, and good for a moment."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from django.db.backends.base.base import BaseDatabaseWrapper

from ...arguments import DEFAULT_LIMITS, TaskArgumentError
from ...dialects import ClaimedJob, Dialect, Outcome, Sequel
from ...dialects.apart import RESPITE
from ...dialects.rejected_rows import in_halves
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...payloads.backends import limits_of
from ...processes.base.database import QueueDatabase, Unavailable
from ...processes.base.system import lease_clock
from ...processes.worker import outcomes
from ...processes.worker.attempt import MOST_ADDED
from ...processes.worker.needed_rows import Row, locked_among
from ...tasks.metadata import JobMetadata
from .gate import UNASKED, Answer, Ask, Gate, Permission

logger = get_logger("steady_queue.worker")

#: Does something with some keys.
UseKeys = Callable[[Gate, Sequence[str]], None]

#: Seconds until jobs ask again whose rows the database has refused.
REFUSAL_PAUSE = 1.0


class RatedStarts:
    """Which of a worker's jobs with rate limits may start, and until when."""

    def __init__(self) -> None:
        #: By job and token, on the lease clock. Filled by the main thread, emptied by any.
        self._given: dict[tuple[int, int], Permission] = {}
        #: Those of jobs that were not started. Filled by any thread, emptied by the main thread.
        self._unused: deque[Permission] = deque()
        #: Keys that were waited for in vain, and until when nobody waits for them again.
        self._held_up: dict[str, float] = {}

    def not_yet(
        self, claims: Sequence[ClaimedJob], room: int, database: QueueDatabase
    ) -> dict[int, Outcome]:
        """Ask for the starts of those of ``claims`` that have a rate limit, as far as there is
        ``room`` for them among the others. Return the outcomes of those that must not start, by
        their ids. Main thread only."""
        # Most jobs have no metadata.
        rated = [claim for claim in claims if claim.metadata is not None and is_rated(claim)]
        if not rated:
            return {}
        room = sum(map(is_rated, claims[:room]))
        try:
            answers = self._ask([_ask_of(claim) for claim in rated], room, database)
        except Unavailable:
            return {claim.job_id: outcomes.released(claim) for claim in rated}
        found = {}
        for claim in rated:
            answer = answers.get(claim.job_id)
            if answer is None:
                found[claim.job_id] = outcomes.postponed(claim, claim.errors, REFUSAL_PAUSE)
            elif answer is UNASKED:
                found[claim.job_id] = outcomes.released(claim)
            elif answer.permission is None:
                found[claim.job_id] = _sent_away(claim, answer)
            else:
                self._given[claim.job_id, claim.token] = answer.permission
        return found

    def _ask(self, asks: Sequence[Ask], room: int, database: QueueDatabase) -> dict[int, Answer]:
        """Return the answers to jobs by their ids; none to those whose key somebody else keeps
        locked, or that the database refuses: that holds up no job with another key."""
        answers: dict[int, Answer] = {}

        def ask(gate: Gate, keys: Sequence[str]) -> None:
            started = sum(each.permission is not None for each in answers.values())
            some = [each for each in asks if each.rate.key in keys]
            answers.update(gate.ask(some, room - started))

        self._with_keys({each.rate.key for each in asks}, ask, database)
        return answers

    def _with_keys(self, keys: Iterable[str], do: UseKeys, database: QueueDatabase) -> None:
        """Do something with ``keys``, but for those that somebody else keeps locked, which are
        waited for but once in a while, and those that the database refuses."""
        began = time.monotonic()
        free = sorted(key for key in keys if not self._is_held_up(key))
        if not free:
            return
        done: set[str] = set()

        def operation(
            connection: BaseDatabaseWrapper, dialect: Dialect
        ) -> tuple[int, dict[str, Exception]]:
            gate = Gate(connection, dialect, lease_clock)

            def do_some(some: Sequence[str]) -> int:
                do(gate, some)
                done.update(some)
                return len(some)

            return in_halves(connection, dialect, free, do_some)

        try:
            _, refused = database.run(operation)
        except Unavailable as unavailable:
            if unavailable.lost:
                raise
        else:
            _tell(refused)
            return
        rows = [Row("Rate", key) for key in free]
        locked = database.run(lambda connection, dialect: locked_among(connection, dialect, rows))
        present = time.monotonic()
        until = present + RESPITE * (present - began)
        self._held_up = {key: end for key, end in self._held_up.items() if end > present}
        self._held_up |= {str(row.key): until for row in locked}
        if locked:
            self._with_keys([key for key in free if key not in done], do, database)

    def _is_held_up(self, key: str) -> bool:
        return self._held_up.get(key, 0.0) > time.monotonic()

    def withdraw(self, claims: Iterable[ClaimedJob]) -> None:
        """Take back the permissions of jobs that do not start here. Main thread only."""
        if self._given:
            for claim in claims:
                self._take_back((claim.job_id, claim.token))

    def give_back(self, database: QueueDatabase) -> None:
        """Let others start in place of jobs that have not, before these ask again. Main thread
        only."""
        if self._given:
            present = lease_clock()
            for key, given in list(self._given.items()):
                if given.until < present:
                    self._take_back(key)
        if not self._unused:
            return
        taken = [self._unused.popleft() for _ in range(len(self._unused))]

        def give_back(gate: Gate, keys: Sequence[str]) -> None:
            gate.give_back([each for each in taken if each.rate.key in keys])

        # If it cannot be done now, these starts are lost.
        with suppress(Unavailable):
            self._with_keys({each.rate.key for each in taken}, give_back, database)

    def asks_for(self, claim: ClaimedJob) -> bool:
        """Whether a job has asked for its start, which is good for a moment alone."""
        return is_rated(claim)

    def may_start(self, claim: ClaimedJob) -> bool:
        """Whether a job may start at this moment. Any thread."""
        given = self._given.pop((claim.job_id, claim.token), None)
        if given is None:
            return not claim.has_rate
        if lease_clock() < given.until:
            return True
        self._unused.append(given)
        return False

    def _take_back(self, key: tuple[int, int]) -> None:
        # Whoever takes it out decides: the job starts, or it does not.
        given = self._given.pop(key, None)
        if given is not None:
            self._unused.append(given)


def _tell(refused: Mapping[str, Exception]) -> None:
    for key, error in refused.items():
        log_internal_error(
            logger,
            "The starts of jobs with the rate limit %r were refused",
            key,
            error=error,
            extra=about("worker.starts_refused"),
        )


def is_rated(claim: ClaimedJob) -> bool:
    """Whether a job has a rate limit."""
    # Most jobs have no metadata.
    return claim.metadata is not None and claim.has_rate


def _ask_of(claim: ClaimedJob) -> Ask:
    metadata = JobMetadata.read(claim.metadata)
    rate = metadata.rate_limit
    assert rate is not None
    return Ask(claim.job_id, rate, metadata.slot_of(claim.attempts), claim.was_released)


def _sent_away(claim: ClaimedJob, answer: Answer) -> Outcome:
    """Return the outcome of a job that comes back for its slot."""
    outcome = outcomes.postponed(claim, claim.errors, answer.delay)
    metadata = JobMetadata.read(claim.metadata)
    slot = (answer.slot, claim.attempts)
    if metadata.slot == slot:
        return outcome
    limits = limits_of(claim.backend_name) or DEFAULT_LIMITS
    # What the caller has passed may be as large as they allow.
    limits = replace(limits, max_bytes=limits.max_bytes + MOST_ADDED)
    try:
        text = replace(metadata, slot=slot).text(limits)
    except TaskArgumentError:  # They have changed since: the job loses its place.
        return outcome
    return outcome._replace(sequel=Sequel(metadata=text))
