"""Rows that name a backend that stores nothing, or that there is not."""

from __future__ import annotations

from typing import Any

import pytest

from steady_queue_core.compat import TaskResultStatus
from steady_queue_core.models import RecurringTask
from steady_queue_core.payloads import PayloadError

from ..core.driver import Driver
from .places import Shards, on_sqlite
from .tasks import audited, greet


@on_sqlite
@pytest.mark.parametrize("name", ["default", "nowhere", "x" * 255])
def test_a_row_cannot_name_itself_out_of_a_signature(west: str, shards: Shards, name: str) -> None:
    shards.configure(payload={"sign": True})
    [key] = shards.keys("west")
    result = greet.enqueue(key)
    forged: dict[str, Any] = {"arguments": '{"args":[99],"kwargs":{}}', "backend_name": name}
    shards.jobs("west").update(**forged)
    found = greet.get_result(result.id)
    assert (found.args, found.backend, found.id) == ([], "default", result.id)
    done = shards.finish(result)
    assert done.status == TaskResultStatus.FAILED
    shards.jobs("west").update(return_value='"forged"')
    forged_result = greet.get_result(result.id)
    object.__setattr__(forged_result, "status", TaskResultStatus.SUCCESSFUL)
    with pytest.raises(PayloadError):
        _ = forged_result.return_value


@on_sqlite
@pytest.mark.parametrize("name", ["default", "nowhere"])
def test_a_recurring_task_whose_row_names_no_shard_cannot_be_run_now(
    west: str, shards: Shards, name: str
) -> None:
    row = RecurringTask(key="x", backend_name=name)
    with pytest.raises(Exception, match=f"'{name}' is no Steady Queue backend in TASKS"):
        row.run_now()


@on_sqlite
@pytest.mark.parametrize("shard", ["east", "west"])
def test_a_callback_of_a_row_that_names_no_shard_is_stored_with_its_outcome(
    west: str, shards: Shards, shard: str, caplog: pytest.LogCaptureFixture
) -> None:
    audited.enqueue(shards.keys("east")[0])
    metadata = shards.jobs("east").get().metadata.replace('"east"', '"default"')
    shards.jobs("east").update(backend_name="default", metadata=metadata)
    shards.settings.TASKS["default"]["OPTIONS"]["shards"] = [shard]
    shards.settings.TASKS = {**shards.settings.TASKS}
    Driver("default").work()
    job, callback = shards.jobs("east")
    assert job.finished_at is not None
    told = {getattr(each, "event", None) for each in caplog.records}
    assert ("task.callback_unknown" in told) is (shard == "west")
    assert (callback.task_path, callback.backend_name) == ("tests.sharding.tasks.audit", "east")
