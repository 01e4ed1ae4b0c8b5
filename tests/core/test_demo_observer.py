"""What the demo says of jobs that it looks at while workers are busy."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest
from django.utils import timezone

from steady_queue_core.demo import observer as module
from steady_queue_core.demo.observer import Observer
from steady_queue_core.models import FailedExecution, Job


@pytest.mark.django_db(transaction=True)
def test_a_job_that_fails_during_a_look_is_not_taken_for_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    present = timezone.now()
    job = Job.objects.create(
        queue_name="q", task_path="demo.tasks.flaky", backend_name="default", arguments="[]",
        enqueued_at=present, max_attempts=1,
    )  # fmt: skip
    real = FailedExecution.objects

    class Slow:
        """Has the job fail right after the failed ones were asked for."""

        def values_list(self, *names: str, flat: bool) -> list[Any]:
            found = list(real.values_list(*names, flat=flat))
            if not found:
                errors = '[["builtins.OSError", "OSError: no"]]'
                Job.objects.filter(pk=job.pk).update(finished_at=present, errors=errors)
                real.create(pk=job.pk, created_at=present)
            return found

    monkeypatch.setattr(module, "FailedExecution", type("Failed", (), {"objects": Slow()}))
    said: list[str] = []
    observer = Observer(UTC, said.append)
    observer.look()
    assert said == []
    observer.look()
    assert [line.split()[1] for line in said] == ["failed"]
    assert observer.done == {}
