"""Tasks of waiting jobs are looked for where the workers have them from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from steady_queue_core.doctor import examine
from steady_queue_core.tasks import registry

from .ward import Ward


@pytest.mark.django_db(transaction=True)
def test_tasks_of_task_modules_are_there(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    source = "from steady_queue_core import task\n\n@task\ndef cure():\n    pass\n"
    (tmp_path / "remote_tasks.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    Ward("default").ready(task_path="remote_tasks.cure")
    assert [each.code for each in examine("default")] == ["task-unknown"]
    settings.STEADY_QUEUE = {"task_modules": ["remote_tasks"]}
    assert examine("default") == []
    monkeypatch.delitem(sys.modules, "remote_tasks")
