"""What keeps the doctor from the queue is what it says, and all that it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connections

from steady_queue_core.checks import check_jobs_left_behind
from steady_queue_core.dialects.registry import override
from steady_queue_core.doctor import Finding, access, examine, examine_job, patient
from steady_queue_core.doctor.patient import Patient
from steady_queue_core.listings import counts
from steady_queue_core.models import Process, ReadyExecution

from ..aliases import added_alias
from ..command_line.invoking import invoke, on_two_databases
from ..conformance.plugins import hooks_of, plugin, registry_of
from ..databases.fresh import fresh_alias
from ..models.everywhere import Jobs
from ..models.recurrence import tasks
from ..servers.kinds import KINDS
from .ward import TASK, Ward

SERVERS = [pytest.param(alias, marks=pytest.mark.server(alias)) for alias in KINDS]


def only(found: list[Finding], code: str) -> str:
    assert [each.code for each in found] == [code]
    assert found[0].severity == "problem"
    return f"{found[0].text} {found[0].remedy}"


@pytest.mark.parametrize("kind", ["sqlite", *SERVERS])
def test_a_database_without_migrations(
    kind: str, tmp_path: Path, settings: Any, django_db_blocker: Any
) -> None:
    with django_db_blocker.unblock(), fresh_alias(kind, tmp_path) as alias:
        settings.TASKS = tasks(alias)
        text = only(examine(alias), "migrations-missing")
        assert f"manage.py migrate --database {alias}" in text
        assert only(examine_job(1, alias), "migrations-missing") == text
        told = invoke("doctor", "--json")
        assert told.code == 1
        assert told.json["findings"][0]["code"] == "migrations-missing"
        call_command("migrate", "steady_queue", "0003", database=alias, verbosity=0)
        assert "0004_" in only(examine(alias), "migrations-missing")
        call_command("migrate", "steady_queue", database=alias, verbosity=0)
        assert [each.code for each in examine(alias)] == ["process-none"]


def test_a_server_that_is_not_there(settings: Any, django_db_blocker: Any) -> None:
    nowhere = {
        "ENGINE": "django.db.backends.postgresql", "NAME": "queue", "USER": "somebody",
        "HOST": "127.0.0.1", "PORT": "1",
    }  # fmt: skip
    with django_db_blocker.unblock(), added_alias("nowhere", nowhere):
        settings.TASKS = tasks("nowhere")
        text = only(examine("nowhere"), "database-unreachable")
        assert 'Database "nowhere" does not answer' in text
        assert "127.0.0.1" in text
        told = invoke("doctor")
        assert told.code == 1
        assert told.out.startswith("problem  database-unreachable  ")


@pytest.mark.django_db
def test_a_driver_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(using: str) -> None:
        raise ImproperlyConfigured("Error loading the module of the driver.")

    monkeypatch.setattr(access, "dialect_for", load)
    assert "install the driver" in only(examine("default"), "settings-invalid")


@pytest.mark.django_db
def test_a_database_without_a_dialect() -> None:
    with override(registry_of()):
        text = only(examine("default"), "dialect-missing")
    assert "pip install steady-queue-sqlite" in text


@pytest.mark.django_db(transaction=True)
def test_a_dialect_that_cannot_tell() -> None:
    from steady_queue_sqlite import plugin as sqlite

    hooks = {name: hook for name, hook in hooks_of(sqlite).items() if "examine" not in name}
    Ward("default")
    with override(registry_of(plugin("sqlite", hooks))):
        assert examine("default") == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("STEADY_QUEUE", {"worker": []}, "'workers'"),
        ("STEADY_QUEUE", {"workers": [{"threads": 0}]}, "threads"),
        ("TASKS", {"default": {"BACKEND": "no.such.Backend"}}, "no.such.Backend"),
        ("TASKS", tasks("default", retries=3), "retries"),
        ("TASKS", tasks("nowhere"), "DATABASES has no 'nowhere'"),
        ("TASKS", {}, "settings-invalid"),
    ],
)
def test_settings_that_are_wrong(name: str, value: Any, said: str, settings: Any) -> None:
    setattr(settings, name, value)
    told = invoke("doctor")
    assert told.code == 1
    assert told.out.startswith("problem  settings-invalid  ")
    assert said in told.out


@pytest.mark.django_db(transaction=True)
def test_jobs_in_a_database_that_no_backend_names(
    tmp_path: Path, settings: Any, django_db_blocker: Any
) -> None:
    Ward("default")
    with django_db_blocker.unblock(), fresh_alias("sqlite", tmp_path) as alias:
        assert examine("default") == []
        call_command("migrate", "steady_queue", database=alias, verbosity=0)
        assert check_jobs_left_behind(None, databases=[alias, "default"]) == []
        Jobs(alias).ready()
        # A process lives there, of another project or of the database that it is a replica of.
        assert examine("default") == check_jobs_left_behind(None, databases=[alias]) == []
        Process.objects.using(alias).all().delete()
        assert f'Jobs wait in the database "{alias}"' in only(
            examine("default"), "database-unserved"
        )
        [warned] = check_jobs_left_behind(None, databases=[alias, "default"])
        assert warned.id == "steady_queue.W021"
        settings.TASKS = tasks("default") | {"old": tasks(alias)["default"]}
        assert check_jobs_left_behind(None, databases=[alias]) == []
        assert "database-unserved" not in [each.code for each in examine("default")]


@pytest.mark.django_db(transaction=True)
def test_a_system_check_that_fails(settings: Any) -> None:
    Ward("default")
    settings.DATABASE_ROUTERS = [KeepOut()]
    first = examine("default")[0]
    assert first.code == "check-error"
    assert "(steady_queue.E009)" in first.text
    assert "SteadyQueueRouter" in first.remedy


class KeepOut:
    """A router that allows no table of the queue."""

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return False if app_label == "steady_queue" else None


@on_two_databases
def test_a_job_that_is_elsewhere(other: str, settings: Any) -> None:
    settings.TASKS = tasks("default") | {"archive": tasks(other)["default"]}
    ward = Ward(other)
    ward.ready(3, backend_name="archive")
    *_, job_id = sorted(ward.ids(ReadyExecution))
    text = only(examine_job(job_id, "default"), "job-elsewhere")
    assert f"manage.py steady_queue doctor {job_id} --backend archive" in text
    told = invoke("doctor", job_id, "--backend", "default")
    assert (told.code, "job-elsewhere" in told.out) == (4, True)
    told = invoke("doctor", job_id)
    assert (told.code, f"Job {job_id} has been ready" in told.out) == (0, True)
    assert "info     job-ready  " in invoke("doctor", job_id, "--backend", "archive").out
    assert invoke("doctor", job_id + 100).code == 4
    assert invoke("doctor", "--backend", "nope").code == 2


@on_two_databases
def test_remedies_name_the_backend_where_there_are_several_databases(
    other: str, settings: Any
) -> None:
    settings.TASKS = tasks("default") | {"archive": tasks(other)["default"]}
    ward = Ward(other)
    ward.ready(3, queue_name="mail", backend_name="archive")
    ward.stop("worker")
    text = only(examine(other), "queue-unserved")
    assert "manage.py steady_queue --queues mail --backend archive" in text
    assert invoke("pause", "mail", "--backend", "archive", "--yes").code == 0
    text = only(examine(other), "queue-paused")
    assert text.endswith("manage.py steady_queue resume mail --backend archive")


@pytest.mark.django_db(transaction=True)
def test_an_examination_that_fails_hides_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(patient: Patient) -> Iterator[Finding]:
        raise RuntimeError("a\x1b[31m bug")
        yield

    monkeypatch.setattr(
        examinations_module(), "EXAMINATIONS", (broken, *examinations_module().EXAMINATIONS)
    )
    ward = Ward("default")
    assert [each.code for each in examine("default")] == ["not-examined"]
    ward.stop("worker")
    ward.ready()
    first, last = examine("default")
    assert (first.code, last.code, last.severity) == ("queue-unserved", "not-examined", "info")
    assert r"RuntimeError: a\x1b[31m bug" in last.text


def examinations_module() -> Any:
    import sys

    return sys.modules["steady_queue_core.doctor.examine"]


@pytest.mark.django_db(transaction=True)
def test_damaged_rows_break_nothing() -> None:
    ward = Ward("default")
    ward.stop("worker")
    ward.ready(1, "mail\x1b[31m")
    with connections["default"].cursor() as cursor:
        cursor.execute("UPDATE steady_queue_ready_executions SET created_at = 'yesterday'")
        cursor.execute("UPDATE steady_queue_processes SET metadata = '[1', hostname = 'a\x1b[31m'")
        cursor.execute("UPDATE steady_queue_jobs SET metadata = '{', errors = 'x'")
    found = examine("default")
    assert found[0].code == "queue-unserved"
    told = invoke("doctor")
    assert "\x1b" not in told.out
    assert r"mail\x1b[31m" in told.out
    [job_id] = ward.ids(ReadyExecution)
    assert "\x1b" not in invoke("doctor", job_id).out


@pytest.mark.django_db(transaction=True)
def test_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    ward = Ward("default")
    ward.stop("worker")
    ward.start("worker", queues=["other"])
    ward.ready(8)
    *_, job_id = sorted(ward.ids(ReadyExecution))
    monkeypatch.setattr(counts, "CAP", 5)
    assert examine("default")[0].text.startswith("5+ jobs wait")
    assert "5+ jobs of queue" in examine_job(job_id, "default")[-1].text


@pytest.mark.django_db(transaction=True)
def test_json_has_what_the_text_has() -> None:
    ward = Ward("default")
    assert invoke("doctor").out == "Nothing is wrong.\n"
    assert invoke("doctor", "--json").json["findings"] == []
    ward.stop("worker")
    ward.ready(2, task_path=TASK)
    told = invoke("doctor", "--json")
    [found] = told.json["findings"]
    assert set(found) == {"code", "severity", "text", "remedy", "database"}
    assert told.json["problems"] == [found["text"]]
    assert (told.code, found["code"], found["database"]) == (1, "queue-unserved", "default")


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_is_lost_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import OperationalError

    ward = Ward("default")

    def lost(patient: Patient) -> Iterator[Finding]:
        raise OperationalError("server closed the connection unexpectedly")
        yield

    monkeypatch.setattr(type(ward.dialect), "is_lost_connection", lambda *_: True)
    [found] = patient.findings_of((lost,), Patient("default"))
    assert found.code == "database-unreachable"
    assert Process.objects.exists()
