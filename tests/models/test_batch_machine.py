"""Whatever is done to batches and their jobs, all of them end, once, and nothing waits in vain."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import hypothesis
import pytest
from hypothesis import settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from steady_queue_core.dialects import Dialect
from steady_queue_core.dialects.joins import Joins
from steady_queue_core.dialects.membership import RunWhen
from steady_queue_core.models.operations import batches as retrying
from steady_queue_core.models.operations import cancel as cancelling
from steady_queue_core.models.operations import discard as discarding
from steady_queue_core.models.operations.clear import Sweep
from steady_queue_core.processes.worker.attempt import Attempt
from steady_queue_core.tasks.steps import AttemptSteps

from .batch_machine import BatchMachine
from .everywhere import on_every_database
from .recurrence import tasks
from .test_machine import FEW, MANY, RUNS, unsynced

#: A batch goes through many states in few steps, each of which is compared.
FEWER = settings(FEW, max_examples=10)


def run(using: str, how: settings, seed: int | None = None) -> None:
    machine = type("Machine", (BatchMachine,), {"using": using})
    if seed is not None:
        machine = hypothesis.seed(seed)(machine)
    with unsynced(using):
        run_state_machine_as_test(machine, settings=how)


@pytest.mark.timeout(3600 if RUNS else 240)
@on_every_database
def test_every_batch_ends_with_its_last_job(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)
    run(using, MANY if RUNS else FEWER)


# --- what the machine finds

finish, keys_of, slept = Joins._finish, discarding.keys_of, Attempt._slept


def nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing."""


def ends_twice(self: Joins, batch: Any) -> Any:
    finish(self, batch)
    return finish(self, batch)


def ends_at_once(self: Joins, batch_id: int) -> Any:
    return self._batches.filter(pk=batch_id, finished_at=None).exclude(started_at=None).first()


def waits_for_nothing(self: Joins, job_ids: Any) -> Any:
    return self._dependencies.none()


def without_members(jobs: Any, job_ids: Any) -> Any:
    return keys_of(jobs, job_ids)._replace(members=[])


def counted_as_an_attempt(self: Attempt, sleep: Any, ended_at: Any) -> Any:
    done = slept(self, sleep, ended_at)
    return done._replace(outcome=done.outcome._replace(attempts=self.claim.attempts + 1))


WRONGS: dict[str, AbstractContextManager[Any]] = {
    "a batch ends twice": mock.patch.object(Joins, "_finish", ends_twice),
    "a batch ends before its last job": mock.patch.object(Joins, "_ending", ends_at_once),
    "a settlement forgets the members": mock.patch.object(Dialect, "_end_members", nothing),
    "a discard forgets the members": mock.patch.object(discarding, "keys_of", without_members),
    "a cancel forgets the members": mock.patch.object(cancelling, "keys_of", without_members),
    "what waits is left behind": mock.patch.object(Joins, "_move_on", nothing),
    "what waits for several waits for one": mock.patch.object(Joins, "_open", waits_for_nothing),
    "what waits for a failure goes on after a success": mock.patch.object(
        RunWhen, "is_met_by", return_value=True
    ),
    "what was skipped has failed": mock.patch.object(
        Joins, "_with_skipped", lambda self, ended: dict(ended)
    ),
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
        Sweep, "_without_members", lambda self, keys: set(keys)
    ),
    "a sleep is forgotten": mock.patch.object(AttemptSteps, "begun_sleeps", ()),
    "a sleep counts as an attempt": mock.patch.object(Attempt, "_slept", counted_as_an_attempt),
}

#: As in ``test_machine``.
SEEDS = {
    "a batch ends twice": 3,
    "a batch ends before its last job": 1,
    "a settlement forgets the members": 1,
    "a discard forgets the members": 1,
    "a cancel forgets the members": 1,
    "what waits is left behind": 3,
    "what waits for several waits for one": 3,
    "what waits for a failure goes on after a success": 1,
    "what was skipped has failed": 3,
    "a batch that has ended takes more": 1,
    "a job that is retried is awaited by nobody": 1,
    "a retry of a batch leaves the order": 1,
    "a retry of a batch overlooks what others have retried": 9,
    "what waits for a job that is gone waits for ever": 45,
    "a batch that is retried is awaited by nobody": 19,
    "a block that raises cancels nothing": 1,
    "a job is cleared before its batch has ended": 20,
    "a sleep is forgotten": 3,
    "a sleep counts as an attempt": 3,
}


def replay_or_search(seed: int) -> None:
    run("default", settings(FEW, max_examples=2, derandomize=False), seed)
    run("default", settings(FEW, max_examples=40))


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("wrong", WRONGS)
def test_the_machine_finds_that(wrong: str, settings: Any) -> None:
    settings.TASKS = tasks("default", backoff=0)
    with WRONGS[wrong], pytest.raises((AssertionError, Flaky)):
        replay_or_search(SEEDS[wrong])
