"""A user's own project, made by ``startproject``: its tests pass, and its jobs run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from zoneinfo import ZoneInfo

import django
import pytest

SHOP = Path(__file__).resolve().parent / "stock" / "shop"

SETTINGS = """

INSTALLED_APPS += [{apps}]
ROOT_URLCONF = "shop.urls"
AUTH_USER_MODEL = "shop.Customer"
TASKS = {{"default": {{"BACKEND": "steady_queue_core.backend.SteadyQueueBackend", "QUEUES": []}}}}
"""


class StockProject:
    """A folder with ``manage.py`` and the shop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        apps = ["steady_queue_core", "shop.apps.ShopConfig"]
        if django.VERSION < (6, 0):
            apps.append("django_tasks")
        self.run("-m", "django", "startproject", "mysite", ".")
        self.configure(SETTINGS.format(apps=", ".join(map(repr, apps))))
        shutil.copytree(SHOP, folder / "shop", ignore=shutil.ignore_patterns("__pycache__"))
        self.manage("makemigrations", "shop")

    def configure(self, text: str) -> None:
        with (self.folder / "mysite" / "settings.py").open("a") as settings:
            settings.write(text)

    def use_zone(self, zone: str | None) -> None:
        """Have times that are local to a zone and naive, or, as ``startproject`` does, aware."""
        self.configure(f"\nUSE_TZ = {zone is None}\nTIME_ZONE = {zone or 'UTC'!r}\n")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        private = ("DJANGO_", "STEADY_QUEUE_")
        environ = {name: text for name, text in os.environ.items() if not name.startswith(private)}
        result = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("manage.py", *arguments)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> StockProject:
    return StockProject(tmp_path_factory.mktemp("stock"))


def test_the_tests_of_the_project_pass(project: StockProject) -> None:
    project.use_zone(None)
    told = project.manage("test").stderr
    found = re.search(r"Ran (\d+) tests", told)
    assert found is not None
    assert int(found[1]) == (SHOP / "tests.py").read_text().count(" def test_")
    assert "WARNINGS" not in told


SET_UP = """
import json, os, sys
import django

os.environ["DJANGO_SETTINGS_MODULE"] = "mysite.settings"
django.setup()
"""

ENQUEUE = (
    SET_UP
    + """
from datetime import timedelta
from django.utils import timezone
from shop.models import Customer, Order
from shop.tasks import greet, tell_times

ada = Customer.objects.create_user("ada", nickname="Ada")
Order.objects.create(customer=ada)
due = timezone.now() + timedelta(seconds=1)
results = [greet.enqueue(ada), tell_times.enqueue(), tell_times.using(run_after=due).enqueue()]
print(json.dumps([due.isoformat(), *(result.id for result in results)]))
"""
)

LOOK = (
    SET_UP
    + """
from shop.models import Order
from shop.tasks import greet, tell_times

tasks = [greet, tell_times, tell_times]
results = [task.get_result(id) for task, id in zip(tasks, sys.argv[1:])]
times = [
    [result.enqueued_at, result.started_at, result.last_attempted_at, result.finished_at]
    for result in results
]
print(json.dumps({
    "values": [result.return_value for result in results[:1]],
    "times": times,
    "told": [result.return_value for result in results[1:]],
    "due": results[2].task.run_after,
    "confirmed_at": Order.objects.get().confirmed_at,
}, default=lambda instant: instant.isoformat()))
"""
)


def test_jobs_run_and_their_local_times_are_right(project: StockProject) -> None:
    zone = "Asia/Kathmandu"
    project.use_zone(zone)
    project.manage("migrate", "--verbosity", "0")
    due, *ids = json.loads(project.run("-c", ENQUEUE).stdout)
    project.manage("steady_queue", "--drain")
    found = json.loads(project.run("-c", LOOK, *ids).stdout)
    assert found["values"] == ["Hello, Ada!"]
    assert found["due"] == due
    texts = [*chain(*found["times"], *found["told"]), found["confirmed_at"]]
    now = datetime.now(ZoneInfo(zone)).replace(tzinfo=None)
    for text in texts:
        assert abs(datetime.fromisoformat(text) - now) < timedelta(minutes=1)
    for times in found["times"]:
        assert times == sorted(times)
    assert found["times"][2][1] >= due
