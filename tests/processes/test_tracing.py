"""Spans and metrics by OpenTelemetry, of real processes, which write them to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import MakeProject
from .harness import Project
from .scenarios import queue, stop_all
from .waiting import wait_for

#: Exports to a file for each process. Spans are sent in batches, so that a process that does not
#: flush them loses them.
TELEMETRY = """
import json, os
from pathlib import Path

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    MetricExporter, MetricExportResult, PeriodicExportingMetricReader,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult,
)

FOLDER = Path(__file__).parent


def write(kind, lines):
    with open(FOLDER / f"{kind}-{os.getpid()}.jsonl", "a") as file:
        file.writelines(json.dumps(line) + "\\n" for line in lines)


class Spans(SpanExporter):
    def export(self, spans):
        write("spans", [
            {
                "name": span.name,
                "id": f"{span.context.trace_id:032x}-{span.context.span_id:016x}",
                "parent": span.parent and f"{span.parent.span_id:016x}",
                "links": [f"{each.context.trace_id:032x}-{each.context.span_id:016x}"
                          for each in span.links],
                "attributes": dict(span.attributes),
            }
            for span in spans
        ])
        return SpanExportResult.SUCCESS


class Metrics(MetricExporter):
    def export(self, data, timeout_millis=0, **options):
        write("metrics", [
            {"name": metric.name, "attributes": dict(point.attributes),
             "value": getattr(point, "value", None)}
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        ])
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis=0):
        return True

    def shutdown(self, timeout_millis=0, **options):
        pass


def never(exporter):
    return BatchSpanProcessor(exporter, schedule_delay_millis=600_000)


def configure(kind=never):
    write("configured", [os.getpid()])
    provider = TracerProvider()
    provider.add_span_processor(kind(Spans()))
    trace.set_tracer_provider(provider)
    reader = PeriodicExportingMetricReader(Metrics(), export_interval_millis=600_000)
    metrics.set_meter_provider(MeterProvider([reader]))
"""
EXTRA = """
import sys

INSTALLED_APPS.append("steady_queue_core.contrib.opentelemetry")
STEADY_QUEUE_OPENTELEMETRY = {"configure": "telemetry.configure"}
if "tests.faultapp.client" in sys.orig_argv:
    import telemetry

    telemetry.configure(kind=telemetry.SimpleSpanProcessor)
"""
#: For the process that enqueues, which is killed.
HANGING = """
    def export(self, spans):
        import sys, time
        if "tests.faultapp.client" not in sys.orig_argv:
            time.sleep(600)
"""


def lines(project: Project, kind: str) -> dict[int, list[Any]]:
    """Return what each process has written, by its pid."""
    return {
        int(path.stem.partition("-")[2]): [
            json.loads(each) for each in path.read_text().splitlines()
        ]
        for path in Path(project.folder).glob(f"{kind}-*.jsonl")
    }


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_each_process_makes_its_providers_and_sends_what_they_have(
    make_project: MakeProject, executor: str
) -> None:
    settings = queue(processes=1, threads=1)
    settings["workers"][0]["executor"] = executor
    project = make_project(settings, extra=EXTRA, files={"telemetry.py": TELEMETRY})
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    [job] = project.enqueue("work")
    [other] = project.enqueue("awork")
    project.wait_done(20)
    children = supervisor.children()
    stop_all(project)

    assert "failed" not in supervisor.errors()
    client = project.client._process.pid
    spans, metrics = lines(project, "spans"), lines(project, "metrics")
    sent = {each["attributes"]["messaging.message.id"]: each for each in spans.pop(client)}
    assert sent.keys() == {str(job), str(other)}
    processed = {
        each["attributes"]["messaging.message.id"]: (pid, each)
        for pid, some in spans.items()
        for each in some
        if each["name"] == "process default"
    }
    assert processed.keys() == sent.keys()
    for job_id, (pid, each) in processed.items():
        assert (each["parent"], each["links"]) == (None, [sent[job_id]["id"]])
        assert each["attributes"]["messaging.consumer.group.name"] == "*"
        assert each["attributes"]["messaging.client.id"].startswith("worker-")
        assert (pid == worker) is (executor == "threads")
    ran = {pid for pid, _ in processed.values()}
    names = [each["name"] for each in spans[worker]]
    assert {"receive default", "settle default"} <= set(names)
    linked = {link for each in spans[worker] for link in each["links"]}
    assert linked >= {each["id"] for each in sent.values()}

    configured = lines(project, "configured")
    assert all(pids == [pid] for pid, pids in configured.items())
    assert configured.keys() == {*children, *ran, client}
    measured = {pid: {each["name"] for each in some} for pid, some in metrics.items()}
    assert "messaging.client.consumed.messages" in measured[worker]
    assert all("messaging.process.duration" in measured[pid] for pid in ran)
    [gauging] = [pid for pid, some in measured.items() if "steady_queue.processes" in some]
    assert gauging in children
    assert gauging != worker
    assert all(not spans.get(pid) for pid in (supervisor.pid,))


def test_processes_that_are_threads_make_their_providers_once(make_project: MakeProject) -> None:
    settings = queue(processes=2, threads=1)
    project = make_project(settings, extra=EXTRA, files={"telemetry.py": TELEMETRY})
    supervisor = project.start("--mode", "async")
    project.enqueue("work")
    project.wait_done(20)
    stop_all(project)
    configured = lines(project, "configured")
    assert configured[supervisor.pid] == [supervisor.pid]
    names = [each["name"] for each in lines(project, "spans")[supervisor.pid]]
    assert names.count("process default") == 1


def test_an_exporter_that_hangs_holds_no_process(make_project: MakeProject) -> None:
    hanging = TELEMETRY.replace("    def export(self, spans):", HANGING)
    project = make_project(queue(processes=1), extra=EXTRA, files={"telemetry.py": hanging})
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    [job] = project.enqueue("work")
    project.wait_done(20)
    stop_all(project)
    assert project.state_of(job) == "finished"
    assert worker not in lines(project, "spans")


SLOW = """
import asyncio, time

from steady_queue_core import task


@task(timeout=0.3, timeout_grace=5)
def slow():
    while True:
        time.sleep(0.01)


@task(timeout=0.3, timeout_grace=5)
async def slow_coroutine():
    await asyncio.sleep(600)


@task
def endless():
    while True:
        time.sleep(0.01)


@task
async def endless_coroutine():
    await asyncio.sleep(600)
"""


def test_attempts_that_are_interrupted_end_their_spans(make_project: MakeProject) -> None:
    settings = queue(processes=1, threads=4, task_modules=["slow"])
    project = make_project(
        settings, extra=EXTRA, files={"telemetry.py": TELEMETRY, "slow.py": SLOW}
    )
    supervisor = project.start()
    [worker] = supervisor.wait_ready()
    run = "from slow import *; print(*[each.enqueue().id for each in ({})])".format
    shell = ("shell", "--no-imports", "-c")
    late = project.manage(*shell, run("slow, slow_coroutine")).stdout.split()
    endless = project.manage(*shell, run("endless, endless_coroutine")).stdout.split()

    def claimed() -> bool:
        return all(project.state_of(int(each)) == "claimed" for each in endless)

    wait_for(claimed, 20, "the start of the endless ones")
    project.client.call("cancel", ids=[int(each) for each in endless])
    project.wait_done(20)
    stop_all(project)
    found = {
        each["attributes"]["messaging.message.id"]: (
            each["attributes"]["steady_queue.outcome"], each["attributes"].get("error.type"),
        )
        for each in lines(project, "spans")[worker]
        if each["name"] == "process default"
    }  # fmt: skip
    assert {found[job_id][0] for job_id in late} == {"failed"}
    assert found[late[0]][1] == "steady_queue_core.errors.TaskTimeout"
    assert [found[job_id] for job_id in endless] == [("cancelled", None)] * 2
