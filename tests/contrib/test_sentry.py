"""Reports to Sentry, by its real SDK with a transport that keeps what it is given."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sentry_sdk
from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from sentry_sdk.transport import Transport

from steady_queue_core import (
    Discard,
    Fail,
    Snooze,
    call,
    enqueue_many,
    limits_concurrency,
    recurring,
    task,
)
from steady_queue_core.arguments import TaskArgumentError
from steady_queue_core.compat import framework_signals
from steady_queue_core.contrib.sentry import failures
from steady_queue_core.contrib.sentry.check_ins import check_in_of, config_of, slug_of
from steady_queue_core.contrib.sentry.installation import install_as, remove
from steady_queue_core.contrib.sentry.options import SentryOptions
from steady_queue_core.errors import TaskCancelled
from steady_queue_core.middleware import Middleware, with_installed
from steady_queue_core.models import Job
from steady_queue_core.retries import constant
from steady_queue_core.schedules import definition as recurring_task
from steady_queue_core.schedules.cron import Schedule
from steady_queue_core.schedules.interval import Interval
from steady_queue_core.tasks.metadata import JobMetadata

from ..core.driver import Driver
from ..core.samples import real_transactions
from ..models.everywhere import on_every_database
from ..models.recurrence import MINUTE, Plan, tasks

HERE = __name__


class Kept(Transport):
    """Keeps envelopes in memory."""

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self.items: list[Any] = []

    def capture_envelope(self, envelope: Any) -> None:
        self.items += [(item.headers["type"], item.payload.json) for item in envelope.items]

    def of(self, kind: str) -> list[Any]:
        return [payload for found, payload in self.items if found == kind]

    @property
    def errors(self) -> list[Any]:
        return self.of("event")

    @property
    def transactions(self) -> list[Any]:
        return self.of("transaction")


def start(**options: Any) -> Kept:
    """Initialise the SDK as a project does, with the default integrations that need no network."""
    given: dict[str, Any] = {"traces_sample_rate": 1.0, **options}
    sentry_sdk.init(
        dsn="http://key@localhost/1", transport=Kept, auto_enabling_integrations=False, **given
    )
    transport = sentry_sdk.get_client().transport
    assert isinstance(transport, Kept)
    return transport


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    install_as(SentryOptions())
    with sentry_sdk.isolation_scope():
        yield
    remove()
    sentry_sdk.get_global_scope().set_client(None)
    sentry_sdk.get_current_scope().set_client(None)


@pytest.fixture
def kept() -> Kept:
    return start()


def headers_of(job_id: str, using: str = "default") -> dict[str, str]:
    return dict(JobMetadata.read(Job.objects.using(using).get(pk=job_id).metadata).headers)


@task
def greet(name: str = "Ada") -> str:
    return f"Hello {name}"


@task
def follow(*args: str) -> None:
    """Come after another job."""


@task
async def wave() -> str:
    sentry_sdk.get_isolation_scope().set_tag("inside", "coroutine")
    return "o/"


@task(max_attempts=2, backoff=constant(0))
def fails(password: str = "") -> None:
    raise LookupError("broken on purpose")


@task
def log_in(name: str, password: str) -> None:
    raise LookupError("broken on purpose")


@task
async def alog_in(name: str, password: str) -> None:
    raise LookupError("broken on purpose")


@task(delivery="transactional")
def log_in_once(name: str, password: str) -> None:
    raise LookupError("broken on purpose")


@task(takes_context=True)
def log_in_by_steps(context: Any, name: str, password: str) -> None:
    context.step("log in", log_in.func, name, password)


@limits_concurrency(key=lambda name, password: {}["no key"])
@task
def never_logs_in(name: str, password: str) -> None:
    """Is never enqueued."""


class Bystander(Middleware):
    """Middleware of the project, whose variables are reported with the others."""

    def enqueue(self, calls: Any, proceed: Any) -> Any:
        return proceed(calls)

    def execute(self, context: Any, proceed: Any) -> Any:
        return proceed()

    async def aexecute(self, context: Any, proceed: Any) -> Any:
        return await proceed()


@task
async def fails_in_a_coroutine() -> None:
    raise LookupError("broken on purpose")


ENDINGS: dict[str, Any] = {
    "snooze": lambda: Snooze(3600),
    "discard": lambda: Discard("not needed"),
    "cancel": lambda: TaskCancelled(),
    "fail": lambda: Fail("never again"),
}


@task(max_attempts=3)
def end(how: str) -> None:
    raise ENDINGS[how]()


@task(max_snoozes=0)
def snoozes_too_often() -> None:
    raise Snooze(1)


@task
def returns_what_cannot_be_stored() -> Any:
    return object()


@on_every_database
def test_a_job_is_published_and_processed_in_one_trace(
    using: str, settings: Any, kept: Kept
) -> None:
    settings.TASKS = tasks(using)
    with sentry_sdk.start_transaction(name="request", op="http.server"):
        result = greet.enqueue("Bob")
    assert Driver(using).finish(result).return_value == "Hello Bob"
    request, processed = kept.transactions
    [published] = [span for span in request["spans"] if span["op"] == "queue.publish"]
    size = len('{"args":["Bob"],"kwargs":{}}')
    common = {
        "messaging.system": "steady_queue",
        "messaging.message.id": result.id,
        "messaging.destination.name": "default",
        "messaging.message.body.size": size,
    }
    assert published["description"] == f"{HERE}.greet"
    assert published["data"].items() >= common.items()
    assert headers_of(result.id, using).keys() == {"sentry-trace", "sentry-baggage"}
    context = processed["contexts"]["trace"]
    assert (processed["transaction"], context["op"]) == (f"{HERE}.greet", "queue.process")
    assert processed["transaction_info"]["source"] == "task"
    assert context["trace_id"] == request["contexts"]["trace"]["trace_id"]
    assert context["parent_span_id"] == published["span_id"]
    assert context["status"] == "ok"
    assert context["data"].items() >= {**common, "messaging.message.retry.count": 0}.items()
    assert context["data"]["messaging.message.receive.latency"] >= 0
    assert processed["tags"].items() >= {
        "task": f"{HERE}.greet", "queue": "default", "attempt": "1",
    }.items()  # fmt: skip
    assert kept.errors == []


@real_transactions
def test_the_callbacks_of_a_job_belong_to_its_trace(kept: Kept) -> None:
    with sentry_sdk.start_transaction(name="request"):
        fails.using(on_failure=follow).enqueue()
    Driver().work()
    traces = {each["contexts"]["trace"]["trace_id"] for each in kept.transactions}
    assert [each["transaction"] for each in kept.transactions][-1] == f"{HERE}.follow"
    assert len(traces) == 1


@real_transactions
def test_many_calls_are_one_span(kept: Kept) -> None:
    with sentry_sdk.start_transaction(name="request"):
        results = enqueue_many([call(greet), call(wave)])
    [span] = [span for span in kept.transactions[0]["spans"] if span["op"] == "queue.publish"]
    assert span["description"] == "2 calls"
    assert span["data"]["messaging.batch.message_count"] == 2
    assert headers_of(results[0].id) == headers_of(results[1].id)


@real_transactions
def test_a_coroutine_has_a_scope_of_its_own(kept: Kept) -> None:
    Driver().finish(async_to_sync(wave.aenqueue)())
    [processed] = kept.transactions
    assert processed["tags"]["inside"] == "coroutine"
    sentry_sdk.capture_message("after")
    assert "inside" not in kept.errors[-1].get("tags", {})


@pytest.mark.parametrize("broken", [fails, fails_in_a_coroutine])
@real_transactions
def test_the_last_failure_is_an_error_and_those_before_are_warnings(
    kept: Kept, broken: Any
) -> None:
    Driver().finish(broken.enqueue())
    told = [
        (
            error["level"],
            error["exception"]["values"][-1]["mechanism"],
            error["tags"]["attempt"],
            error["transaction"],
        )
        for error in kept.errors
    ]
    path = f"{HERE}.{broken.name}"
    last = {"type": "steady_queue", "handled": False}
    if broken is fails:
        again = {"type": "steady_queue", "handled": True}
        assert told == [("warning", again, "1", path), ("error", last, "2", path)]
    else:
        assert told == [("error", last, "1", path)]
    assert {each["contexts"]["trace"]["status"] for each in kept.transactions} == {"internal_error"}
    retries = [
        each["contexts"]["trace"]["data"]["messaging.message.retry.count"]
        for each in kept.transactions
    ]
    assert retries == [0, 1][: len(told)]


@real_transactions
def test_without_us_the_log_is_what_is_reported(kept: Kept) -> None:
    remove()
    Driver().finish(fails_in_a_coroutine.enqueue())
    [error] = kept.errors
    assert error["logger"] == framework_signals.logger.name
    assert with_installed(None) is None


@real_transactions
def test_other_records_of_the_log_are_reported_as_ever(kept: Kept) -> None:
    logging.getLogger("shop").error("out of stock")
    framework_signals.logger.error("something else")
    assert [error["logentry"]["message"] for error in kept.errors] == [
        "out of stock",
        "something else",
    ]


@real_transactions
def test_retried_failures_can_be_left_out(kept: Kept) -> None:
    install_as(SentryOptions(report_retries=False))
    Driver().finish(fails.enqueue())
    assert [error["level"] for error in kept.errors] == ["error"]


@pytest.mark.parametrize(("how", "levels"), [
    ("snooze", []), ("discard", []), ("cancel", []), ("fail", ["error"]),
])  # fmt: skip
@real_transactions
def test_endings_that_a_task_chooses_are_reported_if_they_are_failures(
    kept: Kept, how: str, levels: list[str]
) -> None:
    end.enqueue(how)
    Driver().work()
    assert [error["level"] for error in kept.errors] == levels
    status = "internal_error" if levels else "ok"
    assert [each["contexts"]["trace"]["status"] for each in kept.transactions] == [status]


@real_transactions
def test_failures_that_no_middleware_meets_are_reported_once_as_well(kept: Kept) -> None:
    returned = returns_what_cannot_be_stored.enqueue()
    broken = greet.enqueue()
    snoozed = snoozes_too_often.enqueue()
    Job.objects.filter(pk=broken.id).update(arguments="{")
    Driver().work()
    found = {
        error["contexts"]["steady_queue"]["task_id"]: error["exception"]["values"][-1]["type"]
        for error in kept.errors
    }
    assert len(kept.errors) == 3
    assert found == {
        returned.id: TaskArgumentError.__name__,
        broken.id: "DeserializationError",
        snoozed.id: "TooManySnoozesError",
    }


def told_by_variables(errors: list[Any], text: str) -> list[tuple[str, str, str]]:
    """Return the modules, functions and names of variables that tell this text."""
    return [
        (frame["module"], frame["function"], name)
        for error in errors
        for value in error["exception"]["values"]
        for frame in value["stacktrace"]["frames"]
        for name, shown in frame.get("vars", {}).items()
        if text in json.dumps(shown)
    ]


@pytest.mark.parametrize("broken", [log_in, alog_in, log_in_once, log_in_by_steps])
@real_transactions
def test_variables_of_the_queues_own_frames_hold_no_arguments(
    kept: Kept, settings: Any, broken: Any
) -> None:
    """As the SDK itself writes them."""
    settings.TASKS = tasks("default", middleware=[f"{HERE}.Bystander"])
    Driver().finish(broken.enqueue("ada", "HUNTER2"))
    assert len(kept.errors) == 1
    frames = kept.errors[0]["exception"]["values"][-1]["stacktrace"]["frames"]
    assert frames[-1]["vars"] == {"name": "'ada'", "password": "[Filtered]"}
    assert any(frame["module"] == HERE and "proceed" in frame["vars"] for frame in frames)
    assert told_by_variables(kept.errors, "HUNTER2") == []
    assert "HUNTER2" not in json.dumps(kept.errors)


@real_transactions
def test_variables_of_an_enqueue_that_fails_hold_no_arguments(kept: Kept) -> None:
    password = "HUNTER2"
    try:
        never_logs_in.enqueue("ada", password)
    except Exception:
        sentry_sdk.capture_exception()
    assert len(kept.errors) == 1
    assert told_by_variables(kept.errors, "HUNTER2") == []


@pytest.mark.filterwarnings("ignore:The send_default_pii option is deprecated")
@pytest.mark.parametrize("pii", [False, True])
@real_transactions
def test_arguments_are_told_only_with_leave_and_without_secrets(pii: bool) -> None:
    kept = start(send_default_pii=pii, include_local_variables=False)
    Driver().finish(fails.enqueue("secret of mine"))
    context = kept.errors[-1]["contexts"]["steady_queue"]
    assert context.get("args") == (["*" * 20] if pii else None)
    assert ("kwargs" in context) is pii
    assert "secret of mine" not in json.dumps(kept.items)


@real_transactions
def test_arguments_are_not_looked_at_unless_something_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[Any] = []
    monkeypatch.setattr(failures, "_arguments", lambda result: looked_at.append(result) or {})
    try:
        start(data_collection={"queues": True}, traces_sample_rate=None)
    except TypeError:
        pytest.skip("the SDK is older than that option")
    Driver().finish(greet.enqueue())
    assert looked_at == []
    Driver().finish(fails_in_a_coroutine.enqueue())
    assert len(looked_at) == 1


@real_transactions
def test_the_newer_option_for_what_is_collected_counts_as_well() -> None:
    try:
        kept = start(data_collection={"queues": True})
    except TypeError:
        pytest.skip("the SDK is older than that option")
    Driver().finish(greet.enqueue("Bob"))
    assert kept.transactions[-1]["contexts"]["steady_queue"]["args"] == ["Bob"]


# --- recurring tasks -------------------------------------------------------------------------


def run_of(plan: Plan, key: str, function: Any, schedule: Any = MINUTE) -> None:
    recurring(schedule=schedule, key=key)(function)
    plan.begin()
    plan.pass_by(MINUTE)


@pytest.fixture
def plan(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(recurring_task, "_registry", {})
    settings.TASKS = tasks("default")
    return Plan("default")


@pytest.mark.parametrize(("function", "status"), [(greet, "ok"), (fails, "error")])
@real_transactions
def test_a_run_checks_in_once_and_out_once(
    kept: Kept, plan: Plan, function: Any, status: str
) -> None:
    with sentry_sdk.start_transaction(name="scheduler"):
        run_of(plan, "Greetings of:Ada", function, "* * * * * Europe/Berlin")
    Driver().work()
    first, last = kept.of("check_in")
    config = {
        "schedule": {"type": "crontab", "value": "* * * * *"},
        "timezone": "Europe/Berlin",
    }
    for each in (first, last):
        assert each["monitor_slug"] == "greetings-of-ada"
        assert each["monitor_config"] == config
    assert first["check_in_id"] == last["check_in_id"]
    assert (first["status"], last["status"]) == ("in_progress", status)
    assert last["duration"] >= 0
    processed = [each for each in kept.transactions if each["transaction"] != "scheduler"]
    traces = {each["contexts"]["trace"]["trace_id"] for each in kept.transactions}
    assert len(traces) == len(processed) + 1


@real_transactions
def test_runs_need_not_check_in(kept: Kept, plan: Plan) -> None:
    install_as(SentryOptions(monitors=False))
    run_of(plan, "greetings", greet)
    Driver().work()
    assert kept.of("check_in") == []


def test_what_sentry_knows_of_schedules() -> None:
    def interval(**period: float) -> Any:
        config = config_of(Interval(timedelta(**period)))
        return config and (config["schedule"]["value"], config["schedule"]["unit"])

    assert interval(minutes=90) == (90, "minute")
    assert interval(hours=3) == (3, "hour")
    assert interval(days=2) == (2, "day")
    assert interval(days=14) == (2, "week")
    assert interval(seconds=90) is None
    crontab = config_of(Schedule("@daily", "Asia/Tokyo"))
    assert crontab == {
        "schedule": {"type": "crontab", "value": "0 0 * * *"},
        "timezone": "Asia/Tokyo",
    }
    assert (
        slug_of("Clean up/everything!" * 5) == "clean-up-everything-clean-up-everything-clean-up-e"
    )
    assert slug_of("ÄÖ") == "task"


@pytest.mark.parametrize("told", ["", "5", "{", '{"slug": 5}', "[" * 100_000,
    '{"slug": "../x", "id": "' + "0" * 32 + '", "config": {}}',
    '{"slug": "x", "id": "1", "config": {}}',
])  # fmt: skip
def test_forged_check_ins_are_none(told: str) -> None:
    assert check_in_of({"sentry-monitor": told}) is None


@real_transactions
def test_forged_traces_hurt_nobody(kept: Kept) -> None:
    forged: list[dict[str, Any]] = [
        {"sentry-trace": "x" * 5000},
        {"sentry-trace": "0" * 32 + "-" + "0" * 16 + "-1", "sentry-baggage": "%%%,=,;=" * 500},
        {"sentry-baggage": "sentry-sample_rate=nan,sentry-sample_rand=\x00"},
    ]
    results = [greet.enqueue() for _ in forged]
    for result, headers in zip(results, forged, strict=True):
        Job.objects.filter(pk=result.id).update(metadata=json.dumps({"headers": headers}))
    Driver().work()
    for result in results:
        result.refresh()
        assert result.return_value == "Hello Ada"
    assert len(kept.transactions) == len(forged)


# --- on, off, broken -------------------------------------------------------------------------


@real_transactions
def test_without_an_initialised_sdk_nothing_is_stored() -> None:
    result = greet.enqueue()
    assert Job.objects.get(pk=result.id).metadata is None
    assert Driver().finish(result).return_value == "Hello Ada"


@real_transactions
def test_it_can_be_turned_off(kept: Kept) -> None:
    install_as(SentryOptions(enabled=False))
    assert with_installed(None) is None
    greet.enqueue()
    Driver().work()
    assert kept.items == []


@real_transactions
def test_errors_are_connected_without_tracing() -> None:
    kept = start(traces_sample_rate=None)
    with sentry_sdk.isolation_scope() as scope:
        scope.set_new_propagation_context()
        trace = sentry_sdk.get_traceparent()
        result = fails.enqueue()
    Driver().finish(result)
    assert kept.transactions == []
    assert trace is not None
    own = {error["contexts"]["trace"]["trace_id"] for error in kept.errors}
    assert own == {trace.partition("-")[0]}


@real_transactions
def test_traces_need_not_go_along(kept: Kept) -> None:
    install_as(SentryOptions(propagate_traces=False))
    result = greet.enqueue()
    assert headers_of(result.id) == {}


@real_transactions
def test_what_fails_in_reporting_fails_no_job(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no reports today")

    monkeypatch.setattr(sentry_sdk, "isolation_scope", fail)
    monkeypatch.setattr(sentry_sdk, "start_span", fail)
    assert Driver().finish(greet.enqueue()).return_value == "Hello Ada"
    assert Driver().finish(wave.enqueue()).return_value == "o/"
    monkeypatch.undo()
    monkeypatch.setattr(sentry_sdk, "capture_event", fail)
    assert len(Driver().finish(fails.enqueue()).errors) == 2


@real_transactions
def test_spans_can_be_streamed() -> None:
    pytest.importorskip("sentry_sdk.traces")
    kept = start(trace_lifecycle="stream")
    with sentry_sdk.traces.start_span(name="request"):
        result = greet.enqueue()
    Driver().finish(result)
    broken = fails.enqueue()
    Driver().finish(broken)
    sentry_sdk.flush()
    spans = [span for payload in kept.of("span") for span in payload["items"]]
    by_name: dict[Any, list[Any]] = {}
    for span in spans:
        by_name.setdefault(span["attributes"].get("sentry.op", {}).get("value"), []).append(span)
    [published] = by_name["queue.publish"]
    processed = by_name["queue.process"]
    assert [span["status"] for span in processed] == ["ok", "error", "error"]
    assert processed[0]["trace_id"] == published["trace_id"]
    assert processed[0]["parent_span_id"] == published["span_id"]
    assert processed[0]["attributes"]["messaging.message.id"]["value"] == result.id
    assert [error["level"] for error in kept.errors] == ["warning", "error"]


def test_wrong_options_are_told() -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        SentryOptions.parse("STEADY_QUEUE_SENTRY", {"enabled": 5, "monitor": True})
    assert "STEADY_QUEUE_SENTRY: unknown key 'monitor'; " in str(caught.value)
    assert "STEADY_QUEUE_SENTRY['enabled']: " in str(caught.value)
