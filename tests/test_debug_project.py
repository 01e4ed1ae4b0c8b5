"""A project as ``startproject`` makes it, with ``DEBUG`` and Django's own logging.

Whatever warns fails: Python's warnings are errors there, and so are those of a server to MySQL's
own driver.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes.storage import ServerDatabase
from .servers.kinds import KINDS
from .test_stock_project import SET_UP, StockProject

TASKS = """
from steady_queue_core import limits_concurrency, task
from steady_queue_core.retries import constant


@task
def plain(number):
    return number


@task
async def coroutine(number):
    return number


@limits_concurrency(to=1, key="only")
@task
def limited(number):
    return number


@task(takes_context=True, max_attempts=2, backoff=constant(0.1))
def flaky(context, number):
    if context.attempt == 1:
        raise RuntimeError("once")
    return number


@task
def failing(number):
    raise RuntimeError("always")
"""

ENQUEUE = (
    SET_UP
    + """
from datetime import timedelta
from steady_queue_core import call, enqueue_many
from steady_queue_core.models import Job
from night.tasks import coroutine, failing, flaky, limited, plain

soon = timedelta(seconds=0.5)
kinds = [plain, coroutine, limited, flaky, failing]
for number in range(3):
    for task in kinds:
        task.enqueue(number)
        task.using(run_after=soon).enqueue(number)
enqueue_many([call(task, number) for task in kinds for number in range(3)])
plain.using(run_after=timedelta(hours=1)).enqueue(0)
print(Job.objects.count())
"""
)

LOOK = (
    SET_UP
    + """
from django.contrib.auth import get_user_model
from django.test import Client
from steady_queue_core.models import Job

print(json.dumps({
    "waiting": Job.objects.filter(finished_at=None).count(),
    "failed": sorted(Job.objects.exclude(failedexecution=None).values_list("task_path", flat=True)),
    "finished": Job.objects.exclude(finished_at=None).count(),
}))
client = Client(headers={"host": "localhost"})
client.force_login(get_user_model().objects.get_or_create(
    username="ada", defaults={"is_staff": True, "is_superuser": True})[0])
for page in ("job", "job/1/change", "pause", "process", "recurringtask", "semaphore"):
    response = client.get(f"/admin/steady_queue/{page}/")
    assert response.status_code == 200, (page, response.status_code)
if sys.argv[1] == "retry":
    Job.objects.filter(failedexecution__isnull=False).retry_failed()
else:
    Job.objects.filter(scheduledexecution__isnull=False).discard()
"""
)


@pytest.fixture(
    params=[
        # The pairs of Python and Django have different drivers of MySQL, and share the others.
        pytest.param("default", id="sqlite", marks=pytest.mark.thorough),
        pytest.param("postgres", marks=[pytest.mark.server("postgres")]),
        pytest.param("mysql", marks=pytest.mark.server("mysql")),
        pytest.param("mariadb", marks=[pytest.mark.server("mariadb"), pytest.mark.thorough]),
    ]
)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StockProject]:
    alias = request.param
    made = StockProject(tmp_path)
    night = tmp_path / "night"
    night.mkdir()
    (night / "__init__.py").touch()
    (night / "tasks.py").write_text(TASKS)
    made.configure("\nINSTALLED_APPS += ['night']\nROOT_URLCONF = 'mysite.urls'\nassert DEBUG\n")
    if alias == "default":
        yield made
        return
    address = KINDS[alias].given()
    assert address is not None
    storage = ServerDatabase(address)
    made.configure(f"\nDATABASES['default'] = {storage.setting}\n")
    yield made
    storage.close()


@pytest.mark.parametrize(
    "executor", ["threads", pytest.param("processes", marks=pytest.mark.thorough)]
)
def test_everything_works_and_nothing_warns(project: StockProject, executor: str) -> None:
    def run(*arguments: str) -> str:
        told = project.run("-W", "error", *arguments)
        assert "Warning" not in told.stderr
        return told.stdout

    run("manage.py", "migrate", "--verbosity", "0")
    run("manage.py", "check", "--database", "default")
    enqueued = int(run("-c", ENQUEUE))
    assert enqueued == 3 * 5 * 3 + 1
    for again in (False, True):  # Then those that were retried.
        run("manage.py", "steady_queue", "--drain", "--drain-horizon", "5", "--executor", executor)
        found = json.loads(run("-c", LOOK, "discard" if again else "retry"))
        assert found == {
            "waiting": 1,
            "failed": ["night.tasks.failing"] * 9,
            "finished": enqueued - 1,
        }
    assert json.loads(run("-c", LOOK, "retry"))["waiting"] == 0
