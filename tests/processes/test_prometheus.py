"""A real Prometheus reads the metrics of a real project, and evaluates the example's alerts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steady_queue_core.metrics.families import Families

from .. import documents
from .conftest import MakeProject
from .harness import Project
from .prometheus import EXAMPLES, RULES, Prometheus, program
from .scenarios import queue, stop_all
from .test_probes import free_port
from .waiting import wait_for

TOKEN = "correct-horse-battery"
URLS = """
from django.urls import include, path

urlpatterns = [path("metrics", include("steady_queue_core.metrics.urls"))]
"""
DASHBOARD = EXAMPLES / "steady-queue.grafana.json"
#: What the names of values end with, by the type of their metric.
ENDINGS = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "info": ["_info"]}


@contextmanager
def web_server(project: Project, port: int) -> Iterator[None]:
    with open(project.folder / "web.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "django", "runserver", "--noreload", str(port)],
            cwd=project.folder, env=project.environment(), stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.thorough
def test_alerts_fire_when_they_should(make_project: MakeProject, tmp_path: Path) -> None:
    program("prometheus")
    settings = queue(processes=1, metrics_token=TOKEN)
    settings["workers"][0]["queues"] = ["default"]
    project = make_project(
        settings,
        extra='ROOT_URLCONF = "project_urls"\nALLOWED_HOSTS = ["127.0.0.1"]\n',
        files={"project_urls.py": URLS},
    )
    probe, web = free_port(), free_port()
    project.start("--probe-port", str(probe)).wait_ready(1)
    project.enqueue("work", *[[0.0]] * 20)
    project.wait_done()
    with web_server(project, web):
        prometheus = Prometheus(tmp_path / "prometheus", probe=probe, web=web, token=TOKEN)
        try:
            _watch(prometheus, project)
        finally:
            prometheus.close()
    stop_all(project)


def _watch(prometheus: Prometheus, project: Project) -> None:
    prometheus.wait_scraped()
    finished = "sum by (job) (steady_queue_tasks_finished_total)"
    # Both targets tell the same, up to ten seconds late.
    wait_for(lambda: [value for _, value in prometheus.query(finished)] == [20, 20], 30, "counters")
    prometheus.wait_evaluated()
    assert prometheus.firing() == set()
    rules = prometheus.rules()
    assert [rule["health"] for rule in rules] == ["ok"] * len(rules)
    assert len(rules) == RULES.read_text().count("- alert:") > 5

    project.enqueue("work", [0.0], queue="nobody")
    wait_for(lambda: prometheus.firing() == {"SteadyQueueUnserved"}, 30, "the alert")
    prometheus.wait_evaluated()
    assert prometheus.firing() == {"SteadyQueueUnserved"}
    [(labels, jobs)] = prometheus.query('ALERTS{alertstate="firing"}')
    assert (labels["queue"], labels["severity"], jobs) == ("nobody", "critical", 1)


def test_the_rules_hold_what_their_tests_say() -> None:
    promtool = program("promtool")
    for command in (
        ["check", "rules", RULES.name],
        ["check", "config", "prometheus.yml"],
        ["test", "rules", "steady-queue.test.yml"],
    ):
        done = subprocess.run(
            [promtool, *command], cwd=EXAMPLES, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def expressions() -> Iterator[str]:
    """Yield each expression of the dashboard, as Prometheus would be given it."""
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "1m")
            yield re.sub(r"\$(backend|queue)", ".*", text)


def names() -> dict[str, list[str]]:
    """Return the names of the values of each metric."""
    return {
        family.name: [family.name + ending for ending in ENDINGS.get(family.type, [""])]
        for family in Families().collect()
    }


@pytest.mark.django_db
def test_all_metrics_that_the_examples_name_exist() -> None:
    known = {name for each in names().values() for name in each}
    for path in EXAMPLES.iterdir():
        named = set(re.findall(r"\bsteady_queue_[a-z_]+", path.read_text()))
        assert named <= known, path.name


@pytest.mark.django_db
def test_the_dashboard_shows_everything() -> None:
    text = DASHBOARD.read_text()
    for metric, values in names().items():
        assert any(re.search(rf"\b{name}\b", text) for name in values), metric
    panels = json.loads(text)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)


def test_the_expressions_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    promtool = program("promtool")
    rules = [
        {"record": f"expression{number}", "expr": expression}
        for number, expression in enumerate(expressions())
    ]
    # JSON is YAML.
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(
        [promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rules) > 20


def test_every_alert_is_documented() -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    text = documents.section(documents.page("metrics.md"), "Dashboard and alerts")
    assert alerts == re.findall(r"^\| `(SteadyQueue\w+)`", text, re.MULTILINE)
