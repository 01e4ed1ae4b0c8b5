"""What the doctor makes of rows that somebody has edited by hand: no traceback, and no forgery."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.db import connections

from steady_queue_core.doctor import Finding, examine, examine_job

from ..admin.test_hostile import COLUMNS, VALUES
from .ward import Ward


@pytest.fixture
def ward() -> Ward:
    return Ward("default")


def damage(table: str, column: str, value: str, ids: Sequence[int] = (), key: str = "id") -> None:
    which = f" WHERE {key} IN ({', '.join(map(str, ids))})" if ids else ""
    with connections["default"].cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = {value}{which}")


def assert_told(findings: list[Finding]) -> list[str]:
    """Return the codes of findings that can be printed."""
    for each in findings:
        assert (each.text + each.remedy).isprintable(), each
    return [each.code for each in findings]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("value", VALUES)
def test_a_damaged_job_is_told_of(value: str, ward: Ward) -> None:
    failed, ready = ward.failed(len(COLUMNS)), ward.ready(len(COLUMNS))
    for ids in (failed, ready):
        for column, job_id in zip(COLUMNS, ids, strict=True):
            damage("steady_queue_jobs", column, value, [job_id])
    for job_id in failed:
        [finding] = examine_job(job_id, "default")
        assert finding.code in ("job-failed", "job-damaged")
    for job_id in ready:
        codes = assert_told(examine_job(job_id, "default"))
        assert codes[-1] in ("job-ready", "job-damaged"), codes
    assert_told(examine("default"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("value", VALUES)
def test_the_job_is_told_of_whatever_other_rows_hold(value: str, ward: Ward) -> None:
    ward.claimed(queue_name="taken")
    ward.ready(queue_name="other")
    [job_id] = ward.ready()
    for column in ("kind", "hostname", "metadata", "last_heartbeat_at", "created_at"):
        damage("steady_queue_processes", column, value)
        assert assert_told(examine_job(job_id, "default"))[-1] == "job-ready"
    for column in ("queue_name", "created_at"):
        damage("steady_queue_claimed_executions", column, value)
        damage("steady_queue_ready_executions", column, value, [job_id - 1], key="job_id")
        assert assert_told(examine_job(job_id, "default"))[-1] == "job-ready"
    assert_told(examine("default"))


@pytest.mark.django_db(transaction=True)
def test_a_row_that_cannot_be_decoded_is_damaged(ward: Ward) -> None:
    [job_id] = ward.ready()
    damage("steady_queue_jobs", "task_path", "CAST(x'80' AS TEXT)", [job_id])
    [finding] = examine_job(job_id, "default")
    assert (finding.code, finding.severity) == ("job-damaged", "problem")
    assert finding.text.startswith(f"The rows of job {job_id} cannot be read (OperationalError: ")
    damage("steady_queue_jobs", "task_path", "'tests.app.tasks.noop'", [job_id])
    assert [each.code for each in examine_job(job_id, "default")] == ["job-ready"]
