"""Progress, checkpoints and metadata on the pages of jobs."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from steady_queue_core import arguments
from steady_queue_core.dialects import CheckpointChange
from steady_queue_core.progress import Progress
from steady_queue_core.tasks.metadata import JobMetadata

from .places import Scene, on_every_database
from .visitor import EVERYTHING, Page, Visitor

SECRET = "hunter2"
ATTACK = "<script>alert(1)</script>"


def store(scene: Scene, claim: Any, value: Any = None, progress: Progress | None = None) -> None:
    data = None if value is None else arguments.encode(value)
    change = CheckpointChange(claim.job_id, claim.token, data, progress)
    assert scene.dialect.save_checkpoint(scene.connection, change)


def page_of(job: int, *permissions: str) -> Page:
    visitor = Visitor(*(permissions or EVERYTHING))
    return visitor.see(visitor.url("job", "change", job))


@on_every_database
def test_a_running_job_shows_its_progress_and_its_checkpoint(using: str, scene: Scene) -> None:
    [claim] = scene.claimed(1)
    store(scene, claim, {"row": 17, "token": SECRET}, Progress(3, 4, f"{ATTACK} of Ås"))
    page = page_of(claim.job_id)
    assert f"Progress 3 of 4 (75%): {ATTACK} of Ås" in page
    assert '<progress max="1" value="0.7500"></progress>' in page.source
    assert ATTACK not in page.source
    assert "'row': 17" in page
    assert SECRET not in page.source
    assert "Checkpoint or progress" in page


@on_every_database
def test_progress_without_a_total_has_no_bar(using: str, scene: Scene) -> None:
    [claim] = scene.claimed(1)
    store(scene, claim, progress=Progress(12345.5))
    page = page_of(claim.job_id)
    assert "Progress 12,345.5" in page
    assert "<progress" not in page.source


@on_every_database
def test_the_list_of_running_jobs_shows_it_at_no_cost(using: str, scene: Scene) -> None:
    visitor, counts = Visitor(*EVERYTHING), []
    for _ in range(2):
        for claim in scene.claimed(5)[:3]:
            store(scene, claim, "x" * 10, Progress(1, 8, "on the way"))
        with CaptureQueriesContext(connections[using]) as queries:
            page = visitor.list(state="running")
        counts.append(len(queries))
        assert '"xxxxxxxxxx"' not in str(queries.captured_queries)
    assert page.text.count("1 of 8 (12%): on the way") == 6
    assert counts[0] == counts[1]


@pytest.mark.django_db
def test_what_is_damaged_is_not_decoded(scene: Scene) -> None:
    [claim] = scene.claimed(1)
    store(scene, claim, 1, Progress(1, 2))
    damaged: dict[Any, str] = {
        "{": "The stored 1 characters cannot be decoded.",
        "~s:x:1": "The stored 6 characters cannot be decoded.",
        b"\xff": "cannot be decoded",
        '"' + "x" * 2**20 + '"': "are too long to show",
    }
    for data, told in damaged.items():
        with scene.connection.cursor() as cursor:
            # SQLite lets a row hold anything.
            cursor.execute(
                "UPDATE steady_queue_checkpoints SET data = %s, done = 'x', total = -1, text = %s",
                [data, ATTACK],
            )
        page = page_of(claim.job_id)
        assert "Checkpoint" in page
        assert told in page
        assert "<progress" not in page.source
        assert ATTACK not in page.source
        assert Visitor(*EVERYTHING).list(state="running").status == 200


@on_every_database
def test_metadata_are_shown(using: str, scene: Scene) -> None:
    metadata = JobMetadata(user={"request": ATTACK, "password": SECRET}, max_snoozes=3).text()
    [job] = scene.ready(1, metadata=metadata)
    page = page_of(job)
    assert f"Metadata {{'request': '{ATTACK}'" in page
    assert ATTACK not in page.source
    assert SECRET not in page.source
    [plain] = scene.ready(1)
    assert "Metadata" not in page_of(plain)


@pytest.mark.django_db
def test_who_may_not_see_arguments_sees_neither(scene: Scene) -> None:
    metadata = JobMetadata(user={"request": "7f3a"}).text()
    [claim] = scene.claimed(1, metadata=metadata)
    store(scene, claim, "row 9173", Progress(1, 2, "half"))
    page = page_of(claim.job_id, "view_job")
    assert "1 of 2 (50%): half" in page
    assert "7f3a" not in page
    assert "row 9173" not in page
