"""Whatever is done to batches and their jobs, all of them end, once, and nothing waits in vain."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any
from unittest import mock

import hypothesis
import pytest

from steady_queue_core.dialects import settling
from steady_queue_core.dialects.dependents import Dependents
from steady_queue_core.dialects.joins import Joins
from steady_queue_core.dialects.membership import RunWhen
from steady_queue_core.models.operations import batches as retrying
from steady_queue_core.models.operations import cancel as cancelling
from steady_queue_core.models.operations import discard as discarding
from steady_queue_core.models.operations.clear import JobSweep
from steady_queue_core.models.operations.transition import Keys, Transition, keys_of
from steady_queue_core.processes.worker.attempt import Attempt
from steady_queue_core.tasks.steps import AttemptSteps

from .batch_machine import BatchMachine
from .everywhere import on_every_database
from .recurrence import tasks
from .searching import FEW, PATIENCE, another_seed, finds, search

#: A batch goes through many states in few steps, each of which is compared.
FEWER = hypothesis.settings(FEW, max_examples=10)


@pytest.mark.timeout(PATIENCE)
@on_every_database
def test_every_batch_ends_with_its_last_job(
    using: str, settings: Any, pytestconfig: pytest.Config
) -> None:
    settings.TASKS = tasks(using, backoff=0)
    search(BatchMachine, using, pytestconfig, seeds=SEEDS.values(), usual=FEWER)


# --- what the machine finds

finish, put_off = Joins._finish, Attempt._put_off


def nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing."""


def ends_twice(self: Joins, batch: Any) -> Any:
    finish(self, batch)
    return finish(self, batch)


def ends_at_once(self: Joins, batch_id: int) -> Any:
    return self._batches.filter(pk=batch_id, finished_at=None).exclude(started_at=None).first()


def waits_for_nothing(self: Dependents, job_ids: Any) -> Any:
    return self._dependencies.none()


class WithoutMembers(Transition):
    """Takes no job for a member of a batch."""

    @cached_property
    def keys(self) -> Keys:
        return keys_of(self.jobs, self.job_ids)._replace(members=[])


def counted_as_an_attempt(self: Attempt, meaning: Any, ended_at: Any) -> Any:
    done = put_off(self, meaning, ended_at)
    return done._replace(outcome=done.outcome._replace(attempts=self.claim.attempts + 1))


WRONGS: dict[str, AbstractContextManager[Any]] = {
    "a batch ends twice": mock.patch.object(Joins, "_finish", ends_twice),
    "a batch ends before its last job": mock.patch.object(Joins, "_ending", ends_at_once),
    "a settlement forgets the members": mock.patch.object(
        settling,
        "SETTLING",
        [each for each in settling.SETTLING if each is not settling.end_members],
    ),
    "a discard forgets the members": mock.patch.object(discarding, "Transition", WithoutMembers),
    "a cancel forgets the members": mock.patch.object(cancelling, "Transition", WithoutMembers),
    "what waits is left behind": mock.patch.object(Dependents, "move_on", nothing),
    "what waits for several waits for one": mock.patch.object(
        Dependents, "_open", waits_for_nothing
    ),
    "what waits for a failure goes on after a success": mock.patch.object(
        RunWhen, "is_met_by", return_value=True
    ),
    "what was skipped has failed": mock.patch.object(Dependents, "skipped_of", return_value=set()),
    "a batch that has ended takes more": mock.patch.object(Joins, "lock_open", return_value=set()),
    "a job that is retried is awaited by nobody": mock.patch.object(Joins, "reopen", nothing),
    "a retry of a batch leaves the order": mock.patch.object(
        retrying, "_dependent", return_value=[]
    ),
    "a retry of a batch overlooks what others have retried": mock.patch.object(
        retrying, "_retried", return_value=[]
    ),
    "what waits for a job that is gone waits for ever": mock.patch.object(
        retrying, "_close_dependencies", nothing
    ),
    "a batch that is retried is awaited by nobody": mock.patch.object(
        retrying, "_reopen_in_outer", nothing
    ),
    "a block that raises cancels nothing": mock.patch(
        "steady_queue_core.batches.batch.cancel", nothing
    ),
    "a job is cleared before its batch has ended": mock.patch.object(
        JobSweep, "_without_members", lambda self, keys: set(keys)
    ),
    "a sleep is forgotten": mock.patch.object(AttemptSteps, "begun_sleeps", ()),
    "a sleep counts as an attempt": mock.patch.object(Attempt, "_put_off", counted_as_an_attempt),
}

#: As in ``test_machine``.
SEEDS = {
    "a batch ends twice": 45,
    "a batch ends before its last job": 45,
    "a settlement forgets the members": 19,
    "a discard forgets the members": 9,
    "a cancel forgets the members": 45,
    "what waits is left behind": 19,
    "what waits for several waits for one": 19,
    "what waits for a failure goes on after a success": 45,
    "what was skipped has failed": 3,
    "a batch that has ended takes more": 45,
    "a job that is retried is awaited by nobody": 45,
    "a retry of a batch leaves the order": 45,
    "a retry of a batch overlooks what others have retried": 45,
    "what waits for a job that is gone waits for ever": 45,
    "a batch that is retried is awaited by nobody": 19,
    "a block that raises cancels nothing": 9,
    "a job is cleared before its batch has ended": 20,
    "a sleep is forgotten": 20,
    "a sleep counts as an attempt": 20,
}


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("wrong", WRONGS)
def test_the_machine_finds_that(wrong: str, settings: Any) -> None:
    settings.TASKS = tasks("default", backoff=0)
    with WRONGS[wrong]:
        assert finds(BatchMachine, SEEDS[wrong]), another_seed(BatchMachine)
