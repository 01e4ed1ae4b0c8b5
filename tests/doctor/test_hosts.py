"""What depends on the host and the code where the doctor runs."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from steady_queue_core.doctor import environment, examine, examine_job
from steady_queue_core.tasks import registry

from ..models.everywhere import on_every_database
from ..models.recurrence import tasks
from .causes_of_queues import _recurring
from .ward import Ward


@pytest.mark.parametrize(
    ("ahead", "said"), [(-60, "ahead of the one of this host"), (60, "behind the one of this host")]
)
@on_every_database
def test_a_clock_that_is_wrong(
    using: str, ahead: int, said: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASKS = tasks(using)
    Ward(using)
    shift = timedelta(seconds=ahead)
    monkeypatch.setattr(environment, "host_time", lambda: datetime.now(UTC) + shift)
    [found] = examine(using)
    assert found.code == "clock-skew"
    assert said in found.text
    assert "NTP" in found.remedy


@pytest.mark.django_db(transaction=True)
def test_task_modules_of_the_settings_are_imported(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    (tmp_path / "doctors_tasks.py").write_text(
        "from steady_queue_core import task\n\n@task\ndef cure():\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    ward = Ward("default")
    _recurring(ward, task_path="doctors_tasks.cure", schedule="0 0 1 1 *")
    [job_id] = ward.ready(task_path="doctors_tasks.cure")
    assert examine("default")[0].code == "schedule-task-missing"
    assert examine_job(job_id, "default")[0].code == "job-task-unknown"
    settings.STEADY_QUEUE = {"task_modules": ["doctors_tasks"]}
    assert examine("default") == []
    assert [each.code for each in examine_job(job_id, "default")] == ["job-ready"]
    monkeypatch.delitem(sys.modules, "doctors_tasks")
    settings.STEADY_QUEUE = {"task_modules": ["not_there"]}
    found = examine_job(job_id, "default")[0]
    assert found.code == "job-task-unknown"
    assert "No module named 'not_there'" in found.text
