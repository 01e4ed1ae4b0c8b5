"""The option ``fair_key``: what may be given, what becomes of it, and where it is stored."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from steady_queue_core import arguments, task
from steady_queue_core.compat import InvalidTask, task_backends
from steady_queue_core.dialects import FairKey, FollowUp, NewJob
from steady_queue_core.dialects.callbacks import encoded, jobs_at_end
from steady_queue_core.dialects.membership import MemberState
from steady_queue_core.features.keys import LONGEST_KEY
from steady_queue_core.processes.worker.follow_up_wire import read_follow_ups, write_follow_up
from steady_queue_core.tasks.metadata import JobMetadata

BACKEND = "steady_queue_core.backend.SteadyQueueBackend"
HERE = __name__
UUID_KEY = UUID("12345678-1234-5678-1234-567812345678")


@pytest.fixture(autouse=True)
def _fair(settings: Any) -> None:
    settings.TASKS = {
        "default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"fair_queues": ["mail"]}}
    }


@task(queue_name="mail", fair_key=lambda tenant, *_, **__: tenant)
def send(tenant: Any, number: int = 0) -> None:
    """Have the key that the arguments say."""


@task(queue_name="mail", fair_key=lambda tenant: tenant)
async def asend(tenant: Any) -> None:
    """Have the key that the arguments say."""


@task(queue_name="mail")
def keyless() -> None:
    """Have no key."""


@task(queue_name="mail", fair_key=lambda context, tenant: tenant, takes_context=True)
def wrong_key(context: Any, tenant: str) -> None:
    """Have a key that expects the context."""


def new_job(task: Any, *args: Any, **kwargs: Any) -> NewJob:
    backend: Any = task_backends["default"]
    job: NewJob = backend.new_job(backend.encode(task, list(args), kwargs))
    return job


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("tenant-1", "tenant-1"), (7, "7"), (UUID_KEY, str(UUID_KEY)), (None, ""), ("", ""),
        (" a ", " a "), ("é", "é"), ("x" * 255, "x" * 255),
    ],
)  # fmt: skip
def test_a_job_of_a_fair_queue_has_its_key_and_keeps_it(key: object, text: str) -> None:
    job = new_job(keyless.using(fair_key=key)) if isinstance(key, UUID) else new_job(send, key)
    assert job.fair_key == text
    assert FairKey.read(job.metadata) == text


def test_coroutines_have_keys_as_well() -> None:
    assert new_job(asend, "a").fair_key == "a"


def test_the_key_of_a_model_instance_is_its_label_and_primary_key() -> None:
    user = User(pk=17)
    assert new_job(keyless.using(fair_key=user)).fair_key == "auth.user/17"
    with pytest.raises(InvalidTask, match=f"{HERE}.keyless: fair_key is an instance of auth.User"):
        keyless.using(fair_key=User())


def test_a_long_key_is_cut_off_and_ends_with_its_hash() -> None:
    one, other = (new_job(send, "x" * 300 + end).fair_key for end in "ab")
    assert one is not None
    assert other is not None
    assert one != other
    assert len(one) == len(other) == LONGEST_KEY
    assert one[:100] == "x" * 100


def test_a_job_without_a_key_has_the_empty_one() -> None:
    job = new_job(keyless)
    assert job.fair_key == ""
    assert job.metadata == '{"fair":""}'


def test_a_key_has_no_effect_in_a_queue_that_is_not_fair() -> None:
    job = new_job(send.using(queue_name="bulk"), "a")
    assert job.fair_key is None
    assert job.metadata is None


def test_a_key_that_cannot_be_computed_is_of_no_interest_there() -> None:
    assert new_job(wrong_key.using(queue_name="bulk"), "a").fair_key is None


@pytest.mark.parametrize("key", ["b", 7, UUID_KEY, lambda tenant: tenant * 2])
def test_a_call_may_have_another_key(key: Any) -> None:
    wanted = "aa" if callable(key) else str(key)
    assert new_job(send.using(fair_key=key), "a").fair_key == wanted
    assert new_job(send, "a").fair_key == "a"


def test_none_leaves_the_key_of_the_task() -> None:
    assert new_job(send.using(fair_key=None), "a").fair_key == "a"


@pytest.mark.parametrize(
    ("key", "given"), [(1.5, "float 1.5"), (True, "bool True"), ([], "list []")]
)
def test_other_keys_of_a_call_are_refused(key: Any, given: str) -> None:
    with pytest.raises(InvalidTask) as caught:
        send.using(fair_key=key)
    assert str(caught.value) == (
        f"{HERE}.send: fair_key must be a string, a number, a UUID, a model instance or a callable "
        f"of the arguments, not {given}."
    )


@pytest.mark.parametrize("key", [7, 1.5, b"x", User()])
def test_the_key_of_a_task_is_a_string_or_a_callable(key: Any) -> None:
    with pytest.raises(InvalidTask, match="fair_key must be a string or a callable of the argum"):
        task(fair_key=key)(refused)


def refused() -> None: ...


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (1.5, "is of type float; give a string, a number, a UUID, a model instance, or None for a "
              "job without a key."),
        ("a\0b", "has a NUL character or a lone surrogate: 'a\\x00b'."),
    ],
)  # fmt: skip
def test_what_a_callable_returns_is_checked(value: object, problem: str) -> None:
    with pytest.raises(InvalidTask) as caught:
        new_job(keyless.using(fair_key=lambda: value))
    assert str(caught.value) == f"The fair key of {HERE}.keyless {problem}"


def test_a_callable_that_fails_refuses_the_call() -> None:
    with pytest.raises(InvalidTask) as caught:
        new_job(wrong_key, "a")
    text = str(caught.value)
    assert text.startswith(f"The fair key of {HERE}.wrong_key could not be computed: TypeError: ")
    assert text.endswith("Its fair_key=... is called with the arguments of the task.")


def test_an_option_that_is_misspelt_is_named() -> None:
    with pytest.raises(TypeError, match=r"did you mean 'fair_key'\?"):
        send.using(fairkey="a")  # type: ignore[arg-type]  # What is to be refused.


def test_a_key_is_no_option_that_a_callback_can_have_of_its_own() -> None:
    assert keyless.using(on_success=told) is not None
    with pytest.raises(InvalidTask, match="options that a callback cannot have of its own"):
        keyless.using(on_success=told.using(fair_key="b"))


@task(queue_name="mail", fair_key="told")
def told(result_id: str) -> None:
    """Follow a success."""


# --- where keys are stored ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stored",
    [
        None, "", "[]", "5", '"fair"', '{"fair"}', f'{{"fair":"{"x" * 256}"}}',
        '{"fair":null}', '{"fair":5}', '{"fair":["a"]}',
        '{"fair":{"a":1}}', '{"fair":"a\\u0000"}', '{"fair":"\\ud800"}',
        '{"unfair":"a"}', '{"fair":true}', b'{"fair":"a"', 7, '{"user":{"fair":"a"}}',
        '{"fair":"' + "[" * 2_000,
    ],
)  # fmt: skip
def test_what_is_no_key_is_none(stored: object) -> None:
    assert FairKey.read(stored) is None
    assert JobMetadata.read(stored).fair is None


def test_the_key_stays_where_something_else_in_the_metadata_changes() -> None:
    job = new_job(send, "a")
    metadata = JobMetadata.read(job.metadata)
    assert metadata.fair == "a"
    assert FairKey.read(JobMetadata(fair=metadata.fair, snoozes=3).text()) == "a"
    # What others share is not this job's.
    assert FairKey.read(new_job(send, "b").metadata) == "b"
    assert [new_job(keyless).metadata for _ in range(2)] == ['{"fair":""}'] * 2


class Ended:
    """The row of a batch that ends."""

    pk = 7

    def __init__(self, callbacks: object) -> None:
        self.callbacks = callbacks


def test_the_callback_of_a_batch_keeps_its_key() -> None:
    jobs = {"on_finish": new_job(send, "a"), "on_success": new_job(keyless)}
    batch = Ended(encoded(jobs, arguments.DEFAULT_LIMITS))
    found = jobs_at_end(batch, MemberState.SUCCEEDED)
    assert [job.fair_key for job in found] == ["", "a"]
    assert [FairKey.read(job.metadata) for job in found] == ["", "a"]


@pytest.mark.parametrize("key", [5, ["a"], "x" * 256, "a\0"])
def test_the_callback_of_a_damaged_batch_is_left_out(key: Any) -> None:
    stored = encoded({"on_finish": new_job(send, "a")}, arguments.DEFAULT_LIMITS)
    assert stored is not None
    assert len(jobs_at_end(Ended(stored), MemberState.SUCCEEDED)) == 1
    damaged = stored.replace('"fair_key":"a"', f'"fair_key":{json.dumps(key)}')
    assert damaged != stored
    assert jobs_at_end(Ended(damaged), MemberState.SUCCEEDED) == []


@pytest.mark.parametrize("key", ["a", ""])
def test_the_key_reaches_the_worker_of_a_task_process(key: str) -> None:
    job = new_job(send, key)
    [found] = read_follow_ups([write_follow_up(FollowUp(job))])
    assert found.job == job
    assert found.job.fair_key == key


# --- other backends -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "steady_queue_core.testing.ImmediateBackend",
        "steady_queue_core.testing.DummyBackend",
        "{framework}.backends.immediate.ImmediateBackend",
        "{framework}.backends.dummy.DummyBackend",
    ],
)
def test_backends_without_queues_take_tasks_with_keys(path: str, settings: Any) -> None:
    framework = type(task_backends).__module__
    settings.TASKS = {"default": {"BACKEND": path.format(framework=framework), "QUEUES": []}}
    assert send.using(fair_key="b").enqueue("a").args == ["a"]
    result = async_to_sync(asend.aenqueue)("a")
    assert result.args == ["a"]


def test_a_backend_for_tests_refuses_the_keys_that_the_real_one_refuses(settings: Any) -> None:
    settings.TASKS = {
        "default": {
            "BACKEND": "steady_queue_core.testing.DummyBackend",
            "QUEUES": [],
            "OPTIONS": {"fair_queues": ["mail"]},
        }
    }
    with pytest.raises(InvalidTask, match=r"The fair key of .* could not be computed"):
        wrong_key.enqueue("a")
    assert send.enqueue("a").args == ["a"]
