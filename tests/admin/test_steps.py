"""The steps of jobs on their pages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connections

from steady_queue_core import arguments
from steady_queue_core.admin.job_texts import MOST_STEPS
from steady_queue_core.dialects import StepRecord
from steady_queue_core.models import Step
from steady_queue_core.payloads import step_scope

from .places import Scene, on_every_database, tasks_in
from .test_checkpoints import ATTACK, SECRET, page_of


def take(
    scene: Scene, claim: Any, name: str, value: Any, position: int = 0, **changes: Any
) -> None:
    step = StepRecord(
        claim.job_id, claim.token, name, position, is_sleep=False, data=arguments.encode(value)
    )
    assert scene.dialect.save_step(scene.connection, step._replace(**changes))


@on_every_database
def test_the_page_of_a_job_shows_its_steps_in_their_order(using: str, scene: Scene) -> None:
    [claim] = scene.claimed(1)
    take(scene, claim, "cool", datetime(2030, 1, 2, tzinfo=UTC), 2, is_sleep=True)
    take(scene, claim, ATTACK, {"row": "seventeen", "password": SECRET}, 0)
    take(scene, claim, "fetch the api_token", "x" + SECRET, 1)
    page = page_of(claim.job_id)
    shown = page.text[page.text.index("Steps") :]
    assert shown.index(f"1. {ATTACK}, 2") < shown.index("2. fetch") < shown.index("3. cool, 2")
    assert "'row': 'seventeen'" in page
    assert "sleep until datetime.datetime(2030, 1, 2" in page
    assert SECRET not in page.source
    assert ATTACK not in page.source
    assert "seventeen" not in page_of(claim.job_id, "view_job").text


@on_every_database
def test_the_page_of_a_job_without_steps_shows_none(using: str, scene: Scene) -> None:
    [claim] = scene.claimed(1)
    assert "Steps" not in page_of(claim.job_id)


@on_every_database
def test_of_many_steps_the_last_are_shown_and_of_large_ones_the_size(
    using: str, scene: Scene
) -> None:
    [claim] = scene.claimed(1)
    Step.objects.using(using).bulk_create(
        Step(
            job_id=claim.job_id, name=f"step-{number}", position=number, token=claim.token,
            is_sleep=False, data='"' + "x" * 30_000 + '"', stored_at=scene.present(using),
        )
        for number in range(MOST_STEPS + 1)
    )  # fmt: skip
    page = page_of(claim.job_id)
    assert f"The last {MOST_STEPS} steps." in page
    assert "step-0," not in page
    assert "step-1," in page
    assert "The stored 30,002 characters are too long to show." in page
    assert len(page.source) < 100_000


@on_every_database
def test_sealed_steps_are_opened(using: str, scene: Scene, settings: Any) -> None:
    settings.TASKS = tasks_in(using)
    settings.TASKS["default"]["OPTIONS"]["payload"] = {"sign": True}
    from steady_queue_core.compat import task_backends

    backend: Any = task_backends["default"]
    [claim] = scene.claimed(1)
    scope = step_scope(claim, claim.job_id, "a", is_sleep=False)
    take(scene, claim, "a", 0, data=backend.payload_codec.seal('"row 9173"', scope))
    take(scene, claim, "b", 0, position=1, data=backend.payload_codec.seal('"row 9174"', scope))
    page = page_of(claim.job_id)
    assert "row 9173" in page
    assert "row 9174" not in page


@pytest.mark.django_db
def test_what_is_damaged_is_not_decoded(scene: Scene) -> None:
    [claim] = scene.claimed(1)
    take(scene, claim, "a", 1)
    with connections["default"].cursor() as cursor:
        # SQLite lets a row hold anything.
        cursor.execute(
            "UPDATE steady_queue_steps SET name = %s, position = 'x', is_sleep = 'x', data = %s",
            [b"\xff", b"\xff"],
        )
    page = page_of(claim.job_id)
    assert "Steps" in page
    assert "cannot be decoded" in page
    with connections["default"].cursor() as cursor:
        cursor.execute("UPDATE steady_queue_steps SET stored_at = '2026-99-99 00:00:00'")
    assert "Steps (damaged)" in page_of(claim.job_id)
