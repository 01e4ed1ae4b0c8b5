"""Spans and metrics by OpenTelemetry, of the parts that a worker is made of, with its real SDK."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from opentelemetry import baggage, trace
from opentelemetry import context as contexts
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from steady_queue_core import (
    Batch,
    Discard,
    QueueFull,
    Snooze,
    call,
    enqueue_many,
    limits_concurrency,
    recurring,
    task,
)
from steady_queue_core.contrib.opentelemetry import carrier as carriers
from steady_queue_core.contrib.opentelemetry import instrument, names, uninstrument
from steady_queue_core.contrib.opentelemetry.gauges import Gauges
from steady_queue_core.contrib.opentelemetry.options import TracingOptions
from steady_queue_core.contrib.opentelemetry.processes import Processes
from steady_queue_core.contrib.opentelemetry.telemetry import Telemetry
from steady_queue_core.errors import TaskCancelled
from steady_queue_core.logging import TaskContextFilter
from steady_queue_core.middleware import with_installed
from steady_queue_core.models import Job
from steady_queue_core.processes.base.events import Events
from steady_queue_core.retries import constant
from steady_queue_core.schedules import definition as recurring_task
from steady_queue_core.signals import jobs_claimed, jobs_settled
from steady_queue_core.tasks.metadata import JobMetadata

from ..core.driver import Driver
from ..core.samples import real_transactions
from ..models.everywhere import on_every_database
from ..models.recurrence import MINUTE, Plan, tasks

HERE = __name__

# MySQL's own driver sends the context of a trace along, and MariaDB does not understand it.
pytestmark = pytest.mark.filterwarnings(
    "ignore:This version of the server does not support Query Attributes"
)


class Collected:
    """What the SDK exports."""

    def __init__(self, **options: Any) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracer_provider = TracerProvider(**options)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meter_provider = MeterProvider([self.reader])
        self.tracer = self.tracer_provider.get_tracer("tests")

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def metrics(self) -> dict[str, list[Any]]:
        data: Any = self.reader.get_metrics_data()
        return {
            metric.name: list(metric.data.data_points)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture(autouse=True)
def _off() -> Iterator[None]:
    yield
    uninstrument()


@pytest.fixture
def collected() -> Collected:
    return traced()


def traced(sampler: Any = None, **options: Any) -> Collected:
    found = Collected(**({} if sampler is None else {"sampler": sampler}))
    instrument(
        tracer_provider=found.tracer_provider, meter_provider=found.meter_provider, **options
    )
    return found


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return int(context.span_id)


def linked(span: ReadableSpan) -> list[int]:
    """Return the ids of the spans that a span is linked to."""
    return [link.context.span_id for link in span.links]


def headers_of(job_id: str, using: str = "default") -> dict[str, str]:
    return dict(JobMetadata.read(Job.objects.using(using).get(pk=job_id).metadata).headers)


def flags_of(job_id: str, using: str = "default") -> int:
    """Return the flags of the trace in the headers of a job."""
    return int(headers_of(job_id, using)["traceparent"].rpartition("-")[2], 16)


def seen_by_task() -> list[str]:
    """What a task has found in its context: the id of the trace, and the baggage."""
    return found


found: list[str] = []


@task(priority=3)
def greet(name: str = "Ada") -> str:
    current = trace.get_current_span().get_span_context()
    found[:] = [trace.format_trace_id(current.trace_id), str(baggage.get_baggage("customer"))]
    return f"Hello {name}"


@task
def follow(*args: str) -> None:
    """Come after another job."""


@task
async def wave() -> str:
    record = logging.makeLogRecord({})
    TaskContextFilter().filter(record)
    current = trace.get_current_span().get_span_context()
    found[:] = [trace.format_trace_id(current.trace_id), str(record.__dict__["trace_id"])]
    return "o/"


@task(max_attempts=2, backoff=constant(0))
def fails() -> None:
    raise LookupError("broken on purpose")


@task
async def fails_in_a_coroutine() -> None:
    raise LookupError("broken on purpose")


ENDINGS: dict[str, Any] = {
    "snoozed": lambda: Snooze(3600),
    "discarded": lambda: Discard("not needed"),
    "cancelled": lambda: TaskCancelled(),
}


@task
def end(how: str) -> None:
    raise ENDINGS[how]()


@limits_concurrency(to=1, key=lambda name: name)
@task
def limited(name: str) -> None:
    """Do nothing."""


# --- the way of a job ------------------------------------------------------------------------


@on_every_database
def test_a_job_is_sent_and_processed(using: str, settings: Any, collected: Collected) -> None:
    settings.TASKS = tasks(using)
    with collected.tracer.start_as_current_span("request") as request:
        result = greet.enqueue("Bob")
    driver = Driver(using)
    assert driver.finish(result).return_value == "Hello Bob"
    sent, _, processed = collected.spans
    assert (sent.name, sent.kind) == ("send default", SpanKind.PRODUCER)
    assert sent.parent == request.get_span_context()
    size = len('{"args":["Bob"],"kwargs":{}}')
    common = {
        "messaging.system": "steady_queue",
        "messaging.destination.name": "default",
        "messaging.message.id": result.id,
        "messaging.message.body.size": size,
        "steady_queue.task.name": f"{HERE}.greet",
        "steady_queue.priority": 3,
    }
    assert attributes(sent) == common | {
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "db.namespace": using,
    }
    context = sent.get_span_context()
    assert context is not None
    trace_id = trace.format_trace_id(context.trace_id)
    [(name, traceparent)] = headers_of(result.id, using).items()
    assert name == "traceparent"
    assert traceparent.startswith(f"00-{trace_id}-{trace.format_span_id(context.span_id)}-")
    assert flags_of(result.id, using) & trace.TraceFlags.SAMPLED
    assert result.metadata == {}
    assert (processed.name, processed.kind) == ("process default", SpanKind.CONSUMER)
    assert processed.parent is None
    assert linked(processed) == [id_of(sent)]
    told = attributes(processed)
    assert told.pop("steady_queue.wait_ms") >= 0
    assert told == common | {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.client.id": driver.name,
        "steady_queue.attempt": 1,
        "steady_queue.outcome": "finished",
    }
    assert processed.status.status_code is StatusCode.UNSET
    assert seen_by_task()[0] == trace.format_trace_id(processed.get_span_context().trace_id)


@on_every_database
def test_many_calls_are_one_span_and_each_job_has_its_context(
    using: str, settings: Any, collected: Collected
) -> None:
    settings.TASKS = tasks(using)
    one, two = enqueue_many([call(greet, "Ada"), call(greet, "Bob")])
    three, four = enqueue_many([call(greet), call(greet.using(queue_name="mail", priority=1))])
    first, second = collected.spans
    assert (first.name, second.name) == ("send default", "send")
    assert attributes(first) == {
        "messaging.system": "steady_queue",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "default",
        "messaging.batch.message_count": 2,
        "steady_queue.task.name": f"{HERE}.greet",
        "steady_queue.priority": 3,
        "db.namespace": using,
    }
    assert "messaging.destination.name" not in attributes(second)
    assert "steady_queue.priority" not in attributes(second)
    assert headers_of(one.id, using) == headers_of(two.id, using) != headers_of(three.id, using)
    Driver(using).work()
    spans = [*collected.named("process default"), *collected.named("process mail")]
    expected = [first, first, second, second]
    assert [linked(each) for each in spans] == [[id_of(each)] for each in expected]
    sent = collected.metrics()["messaging.client.sent.messages"]
    assert {point.attributes["messaging.destination.name"]: point.value for point in sent} == {
        "default": 3,
        "mail": 1,
    }
    assert {four.id, three.id} <= {attributes(each)["messaging.message.id"] for each in spans}


@real_transactions
def test_an_attempt_can_be_part_of_the_trace_that_enqueued_it() -> None:
    collected = traced(propagate="parent")
    greet.enqueue()
    driver = Driver()
    with collected.tracer.start_as_current_span("surrounding") as surrounding:
        driver.work()
    [sent], [processed] = collected.named("send default"), collected.named("process default")
    assert processed.parent is not None
    assert processed.parent.span_id == id_of(sent)
    assert linked(processed) == [id_of(sent), surrounding.get_span_context().span_id]


@pytest.mark.parametrize("propagate", ["link", "parent"])
@real_transactions
def test_baggage_goes_along(propagate: str) -> None:
    traced(propagate=propagate)
    token = contexts.attach(baggage.set_baggage("customer", "17"))
    try:
        result = greet.enqueue()
    finally:
        contexts.detach(token)
    assert headers_of(result.id)["baggage"] == "customer=17"
    Driver().work()
    assert seen_by_task()[1] == "17"


@real_transactions
def test_a_run_of_a_recurring_task_begins_a_trace(
    settings: Any, monkeypatch: pytest.MonkeyPatch, collected: Collected
) -> None:
    monkeypatch.setattr(recurring_task, "_registry", {})
    settings.TASKS = tasks("default")
    plan = Plan("default")
    recurring(schedule=MINUTE, key="greetings")(greet)
    plan.begin()
    with collected.tracer.start_as_current_span("scheduler"):
        plan.pass_by(MINUTE)
    [sent] = collected.named("send default")
    assert sent.parent is None
    assert attributes(sent)["steady_queue.recurring_key"] == "greetings"


@real_transactions
def test_coroutines_have_the_context_of_their_attempt(collected: Collected) -> None:
    assert Driver().finish(async_to_sync(wave.aenqueue)()).return_value == "o/"
    [processed] = collected.named("process default")
    own = trace.format_trace_id(processed.get_span_context().trace_id)
    assert seen_by_task() == [own, own]
    record = logging.makeLogRecord({})
    TaskContextFilter().filter(record)
    assert record.__dict__["trace_id"] is None


@pytest.mark.parametrize("broken", [fails, fails_in_a_coroutine])
@real_transactions
def test_failures_are_recorded_in_each_attempt(collected: Collected, broken: Any) -> None:
    Driver().finish(broken.enqueue())
    spans = collected.named("process default")
    expected = ["retried", "failed"] if broken is fails else ["failed"]
    assert [attributes(span)["steady_queue.outcome"] for span in spans] == expected
    assert [attributes(span)["steady_queue.attempt"] for span in spans] == [1, 2][: len(spans)]
    for span in spans:
        assert attributes(span)["error.type"] == "LookupError"
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description == "broken on purpose"
        [event] = span.events
        assert dict(event.attributes or {})["exception.message"] == "broken on purpose"
    [point] = collected.metrics()["messaging.process.duration"]
    assert point.count == len(expected)
    assert point.attributes["error.type"] == "LookupError"


@pytest.mark.parametrize("how", list(ENDINGS))
@real_transactions
def test_endings_that_a_task_chooses_are_no_failures(collected: Collected, how: str) -> None:
    end.enqueue(how)
    Driver().work()
    [span] = collected.named("process default")
    assert attributes(span)["steady_queue.outcome"] == how
    assert "error.type" not in attributes(span)
    assert (span.status.status_code, span.events) == (StatusCode.UNSET, ())


@real_transactions
def test_a_refused_call_is_an_error_of_its_span(settings: Any, collected: Collected) -> None:
    settings.TASKS = tasks("default")
    settings.TASKS["default"]["OPTIONS"] |= {"queue_limits": {"default": 1}}
    greet.enqueue()
    with pytest.raises(QueueFull):
        greet.enqueue()
    refused = collected.spans[-1]
    kind = "steady_queue_core.errors.QueueFull"
    assert attributes(refused)["error.type"] == kind
    assert refused.status.status_code is StatusCode.ERROR
    assert "messaging.message.id" not in attributes(refused)
    sent = collected.metrics()["messaging.client.sent.messages"]
    assert {point.attributes.get("error.type"): point.value for point in sent} == {None: 1, kind: 1}


@real_transactions
def test_calls_that_wait_for_the_commit_are_sent_when_they_are_made(
    settings: Any, collected: Collected
) -> None:
    with transaction.atomic():
        result = greet.using(enqueue_on_commit=True).enqueue()
    [span] = collected.spans
    assert "messaging.message.id" not in attributes(span)
    assert headers_of(result.id)["traceparent"]


@real_transactions
def test_options_of_calls_are_attributes(collected: Collected) -> None:
    with Batch() as batch:
        greet.using(run_after=timedelta(minutes=1)).enqueue()
    [span] = collected.spans
    assert attributes(span)["messaging.message.conversation_id"] == str(batch.id)
    assert attributes(span)["steady_queue.delay_ms"] == 60_000
    limited.enqueue("secret")
    assert "steady_queue.concurrency_key" not in attributes(collected.spans[-1])
    collected = traced(concurrency_keys=True)
    limited.enqueue("secret")
    assert attributes(collected.spans[-1])["steady_queue.concurrency_key"].endswith("secret")


@real_transactions
def test_the_callbacks_of_a_job_are_linked_to_its_enqueue(collected: Collected) -> None:
    greet.using(on_success=follow).enqueue()
    Driver().work()
    [sent] = collected.named("send default")
    spans = collected.named("process default")
    paths = [attributes(span)["steady_queue.task.name"] for span in spans]
    assert paths == [f"{HERE}.greet", f"{HERE}.follow"]
    assert [linked(span) for span in spans] == [[id_of(sent)]] * 2


# --- nothing to record -----------------------------------------------------------------------


@real_transactions
def test_without_a_provider_nothing_is_stored() -> None:
    instrument()
    result = greet.enqueue()
    assert Job.objects.get(pk=result.id).metadata is None
    assert Driver().finish(result).return_value == "Hello Ada"


@real_transactions
def test_what_is_not_sampled_says_so_on_its_way() -> None:
    collected = traced(ALWAYS_OFF)
    result = greet.enqueue()
    assert flags_of(result.id) & trace.TraceFlags.SAMPLED == 0
    assert Driver().finish(result).return_value == "Hello Ada"
    assert collected.spans == []
    assert "messaging.process.duration" in collected.metrics()


@real_transactions
def test_without_instrumentation_nothing_is_in_the_way(collected: Collected) -> None:
    uninstrument()
    assert with_installed(None) is None
    assert jobs_claimed.receivers == jobs_settled.receivers == []
    greet.enqueue()
    assert collected.spans == []


@real_transactions
def test_what_fails_in_tracing_fails_no_job(
    collected: Collected, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no tracing today")

    monkeypatch.setattr(carriers, "injected", fail)
    monkeypatch.setattr(carriers, "extracted", fail)
    assert Driver().finish(greet.enqueue()).return_value == "Hello Ada"
    assert Driver().finish(wave.enqueue()).return_value == "o/"
    monkeypatch.undo()
    monkeypatch.setattr(names, "error_type", fail)
    result = Driver().finish(fails.enqueue())
    assert [error.exception_class for error in result.errors] == [LookupError] * 2


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@task
def says_nothing() -> None:
    raise Silent


@real_transactions
def test_an_error_without_words_ends_its_span_as_well(collected: Collected) -> None:
    Driver().finish(says_nothing.enqueue())
    [span] = collected.named("process default")
    assert attributes(span)["error.type"] == f"{HERE}.Silent"


@real_transactions
def test_forged_contexts_are_ignored(collected: Collected) -> None:
    valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    forged: list[dict[str, Any]] = [
        {"traceparent": "00-" + "g" * 32 + "-b7ad6b7169203331-01"},
        {"traceparent": "x" * 10_000},
        {"traceparent": 5},
        {"traceparent": valid, "tracestate": "=" * 5000},
        {"traceparent": valid, "baggage": "%%%=;;;,,,\x00" * 500},
        {"baggage": "a=b," * 3000},
    ]
    results = [greet.enqueue() for _ in forged]
    for result, headers in zip(results, forged, strict=True):
        Job.objects.filter(pk=result.id).update(metadata=json.dumps({"headers": headers}))
    Driver().work()
    for result in results:
        result.refresh()
        assert result.return_value == "Hello Ada"
    spans = collected.named("process default")
    assert [len(span.links) for span in spans] == [0, 0, 0, 1, 1, 0]


@real_transactions
def test_baggage_that_is_too_large_is_left_out(collected: Collected) -> None:
    context = contexts.Context()
    for number in range(4):
        context = baggage.set_baggage(f"name{number}", "x" * 4000, context=context)
    carriers_token = contexts.attach(context)
    try:
        result = greet.using(metadata={"order": 1}).enqueue()
    finally:
        contexts.detach(carriers_token)
    assert "traceparent" in headers_of(result.id)
    assert sum(map(len, headers_of(result.id).values())) < 16_384


# --- claims, outcomes, gauges ----------------------------------------------------------------


def told_of(driver: Driver, using: str) -> Events:
    return Events("worker", driver.name, using)


@on_every_database
def test_claims_and_outcomes_are_spans_of_their_own(
    using: str, settings: Any, collected: Collected
) -> None:
    settings.TASKS = tasks(using)
    enqueue_many([call(greet), call(greet), call(fails.using(queue_name="mail"))])
    driver = Driver(using)
    claims = driver.claim()
    told_of(driver, using).claimed(claims, 0.25)
    results = [driver.run(claim) for claim in claims]
    ended = [(claim, each.outcome) for claim, each in zip(claims, results, strict=True)]
    told_of(driver, using).settled(ended, 0.5)
    told_of(driver, using).settled(ended, None)
    [sent], [received] = collected.named("send"), collected.named("receive")
    assert (received.kind, received.parent) == (SpanKind.CLIENT, None)
    assert linked(received) == [id_of(sent)]
    assert attributes(received) == {
        "messaging.system": "steady_queue",
        "messaging.operation.name": "receive",
        "messaging.operation.type": "receive",
        "messaging.batch.message_count": 3,
        "messaging.client.id": driver.name,
        "db.namespace": using,
    }
    assert received.start_time is not None
    assert received.end_time is not None
    assert received.end_time - received.start_time == 250_000_000
    [finished], [retried] = collected.named("settle default"), collected.named("settle mail")
    assert attributes(finished)["messaging.batch.message_count"] == 2
    assert attributes(finished)["steady_queue.outcome"] == "finished"
    assert attributes(retried)["steady_queue.outcome"] == "retried"
    measured = collected.metrics()
    consumed = measured["messaging.client.consumed.messages"]
    assert {point.attributes["messaging.destination.name"]: point.value for point in consumed} == {
        "default": 2,
        "mail": 1,
    }
    durations = {
        point.attributes["messaging.operation.name"]: point.sum
        for point in measured["messaging.client.operation.duration"]
    }
    assert (durations["receive"], durations["settle"]) == (0.25, 0.5)


@real_transactions
def test_spans_of_claims_and_outcomes_can_be_left_out() -> None:
    collected = traced(receive_and_settle=False)
    greet.enqueue()
    driver = Driver()
    told_of(driver, "default").claimed(driver.claim(), 0.25)
    assert [span.name for span in collected.spans] == ["send default"]
    assert "messaging.client.consumed.messages" in collected.metrics()


@on_every_database
def test_gauges_measure_queues_and_processes(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    reader = InMemoryMetricReader()
    gauges = Gauges(Telemetry(None, MeterProvider([reader])))
    enqueue_many([call(greet), call(greet), call(greet.using(queue_name="mail"))])
    Driver(using)
    collected = Collected()
    collected.reader = reader
    assert collected.metrics() == {}
    gauges.begin(using)
    measured = collected.metrics()

    def by(name: str, attribute: str) -> dict[str, Any]:
        return {point.attributes[attribute]: point.value for point in measured[name]}

    destination = "messaging.destination.name"
    assert by("steady_queue.queue.depth", destination) == {"default": 2, "mail": 1}
    waits = by("steady_queue.queue.oldest_wait", destination)
    assert waits.keys() == {"default", "mail"}
    assert all(0 <= wait < 60 for wait in waits.values())
    assert by("steady_queue.processes", "steady_queue.process.kind") == {"worker": 1}
    assert by("steady_queue.processes", "steady_queue.process.state") == {"live": 1}
    gauges.end(using)
    assert collected.metrics() == {}


# --- settings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"propagate": "both"}, "instrument()['propagate']: expected 'link' or 'parent'"),
        ({"gauges": 5}, "instrument()['gauges']: "),
        ({"configure": 5}, "instrument()['configure']: expected the dotted path of a function"),
        ({"configure": "nowhere.at_all"}, "'nowhere.at_all' cannot be imported: "),
        ({"configure": f"{HERE}.HERE"}, "is not a function without parameters"),
    ],
)
def test_wrong_options_are_told(options: Any, problem: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        instrument(**options)
    assert problem in str(caught.value)


def test_no_thread_works_before_the_providers_are_made() -> None:
    made, may_end = threading.Event(), threading.Event()
    calls: list[str] = []

    def configure() -> None:
        made.set()
        may_end.wait(10)
        calls.append("configured")

    processes = Processes(Telemetry(), TracingOptions(), configure)

    def begin(name: str) -> None:
        processes.begin("worker", name, {}, "default")
        calls.append(name)

    first = threading.Thread(target=begin, args=["first"])
    second = threading.Thread(target=begin, args=["second"])
    first.start()
    assert made.wait(10)
    second.start()
    second.join(0.2)
    assert calls == []
    may_end.set()
    first.join(10)
    second.join(10)
    assert calls[0] == "configured"
    assert sorted(calls[1:]) == ["first", "second"]


def test_names_are_those_of_the_conventions() -> None:
    semconv = pytest.importorskip("opentelemetry.semconv._incubating")
    assert semconv
    from opentelemetry.semconv._incubating.attributes import messaging_attributes
    from opentelemetry.semconv._incubating.metrics import messaging_metrics

    if not hasattr(messaging_metrics, "MESSAGING_CLIENT_SENT_MESSAGES"):
        pytest.skip("these conventions are older than ours")
    known = {
        value
        for module in (messaging_attributes, messaging_metrics)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    own = [value for name, value in vars(names).items() if name.isupper()]
    ours = {value for value in own if isinstance(value, str) and value.startswith("messaging.")}
    assert len(ours) == 14
    assert ours <= known
