"""The ids of results: what may come from anywhere names a job, or none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steady_queue_core.compat import TaskResultDoesNotExist
from steady_queue_core.sharding.results import joined, parts

from ..core.samples import FRAMEWORK
from .places import Shards, on_sqlite
from .tasks import greet


@given(st.text(min_size=1), st.integers(1, 2**63 - 1))
def test_a_joined_id_has_its_parts(shard: str, job_id: int) -> None:
    assert parts(joined(shard, str(job_id))) == (shard, str(job_id))


@given(st.one_of(st.text(), st.binary(), st.integers(), st.none()))
def test_anything_else_has_parts_or_none(anything: Any) -> None:
    found = parts(anything)
    assert found is None or (all(found) and joined(*found) == anything)


HOSTILE = [
    "", ":", "17", "east", "east:", ":17", "nope:1", "default:1", "east:0", "east:-1", "east:1.0",
    "east:99999999999999999999", "east:1 OR 1=1", "east:\0", "\0:1", "east:1\0", " east:1",
    "EAST:1", "east:east:1", "east:²", "x" * 10_000, "east:" + "9" * 10_000, "x" * 10_000 + ":1",
    "east:\ud800",
]  # fmt: skip


@on_sqlite
@pytest.mark.parametrize("result_id", HOSTILE, ids=range(len(HOSTILE)))
def test_an_unknown_id_is_no_result(west: str, shards: Shards, result_id: str) -> None:
    greet.enqueue(shards.keys("east")[0])
    with pytest.raises(TaskResultDoesNotExist):
        greet.get_result(result_id)
    with pytest.raises(TaskResultDoesNotExist):
        shards.backend.cancel(result_id)


@on_sqlite
def test_the_id_of_a_backend_that_cannot_be_used_is_no_result(west: str, shards: Shards) -> None:
    foreign = {"BACKEND": f"{FRAMEWORK}.backends.dummy.DummyBackend"}
    broken: dict[str, Any] = {"nowhere": {"BACKEND": "nowhere.Backend"}, "none": {}}
    shards.settings.TASKS = {**shards.settings.TASKS, **broken, "foreign": foreign}
    for alias in (*broken, "foreign"):
        with pytest.raises(TaskResultDoesNotExist):
            greet.get_result(f"{alias}:1")
        with pytest.raises(TaskResultDoesNotExist):
            shards.backend.cancel(f"{alias}:1")


@on_sqlite
def test_the_same_id_in_another_shard_is_another_job(west: str, shards: Shards) -> None:
    first = greet.enqueue(shards.keys("east")[0])
    with pytest.raises(TaskResultDoesNotExist):
        greet.get_result(first.id.replace("east", "west"))
