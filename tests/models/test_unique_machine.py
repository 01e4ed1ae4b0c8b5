"""Whatever is done to a queue, at most one live job has a unique key."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest

from steady_queue_core.dialects import unique_enqueue, unique_keys
from steady_queue_core.models.operations import cancel as cancelling
from steady_queue_core.models.operations import discard as discarding
from steady_queue_core.models.operations import retry as retrying
from steady_queue_core.models.operations.transition import Transition

from .everywhere import on_every_database
from .recurrence import tasks
from .searching import PATIENCE, another_seed, finds, search
from .unique_machine import UniqueMachine


@pytest.mark.timeout(PATIENCE)
@on_every_database
def test_at_most_one_live_job_has_a_key(
    using: str, settings: Any, pytestconfig: pytest.Config
) -> None:
    settings.TASKS = tasks(using, backoff=0)
    search(UniqueMachine, using, pytestconfig, seeds=SEEDS.values())


def nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing."""


Keys, Enqueue = unique_keys.UniqueKeys, unique_enqueue.UniqueEnqueue


def allows_all(job_ids: Any, wanted: Any, holders: Any) -> Any:
    return list(job_ids)


class KeepsKeys(Transition):
    """Leaves jobs that have ended their unique keys."""

    def free_unique_keys(self, job_ids: Any = ()) -> None:
        """Do nothing."""


WRONGS: dict[str, AbstractContextManager[Any]] = {
    "the end of a job leaves its key": mock.patch.object(Keys, "end", nothing),
    "a cancelled job has its key": mock.patch.object(cancelling, "Transition", KeepsKeys),
    "a discarded job has its key": mock.patch.object(discarding, "Transition", KeepsKeys),
    "a retry takes a key that another job has": mock.patch.object(
        retrying, "_without_conflicts", allows_all
    ),
    "a retry takes no key": mock.patch.object(retrying, "_take", nothing),
    "keys are not kept": mock.patch.object(Keys, "keep", nothing),
    "who begins keeps its key": mock.patch.object(Keys, "start", return_value=set()),
    "a key that is free is not taken": mock.patch.object(Keys, "take", nothing),
    "a started job is replaced": mock.patch.object(unique_enqueue, "has_begun", return_value=False),
    "a job that waits is not replaced": mock.patch.object(
        unique_enqueue, "has_begun", return_value=True
    ),
    "a key is kept for ever": mock.patch.object(unique_keys, "_is_held", return_value=True),
}


#: As in ``test_machine``.
SEEDS = {
    "the end of a job leaves its key": 72,
    "a cancelled job has its key": 15,
    "a discarded job has its key": 12,
    "a retry takes a key that another job has": 15,
    "a retry takes no key": 12,
    "keys are not kept": 72,
    "who begins keeps its key": 12,
    "a key that is free is not taken": 72,
    "a started job is replaced": 7,
    "a job that waits is not replaced": 15,
    "a key is kept for ever": 72,
}


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("wrong", WRONGS)
def test_the_machine_finds_that(wrong: str, settings: Any) -> None:
    settings.TASKS = tasks("default", backoff=0)
    with WRONGS[wrong]:
        assert finds(UniqueMachine, SEEDS[wrong]), another_seed(UniqueMachine)
