"""Both integrations at once, and neither."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import sentry_sdk
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.test.utils import CaptureQueriesContext
from opentelemetry import baggage
from opentelemetry import context as contexts

from steady_queue_core import call, enqueue_many
from steady_queue_core.contrib import harmless as module
from steady_queue_core.contrib.harmless import harmless
from steady_queue_core.contrib.opentelemetry import instrument, uninstrument
from steady_queue_core.contrib.sentry.installation import install_as, remove
from steady_queue_core.contrib.sentry.options import SentryOptions

from ..core.driver import Driver
from ..core.samples import real_transactions
from .test_opentelemetry import Collected, greet, headers_of, seen_by_task
from .test_sentry import start


@pytest.fixture(autouse=True)
def _off() -> Iterator[None]:
    with sentry_sdk.isolation_scope():
        yield
    uninstrument()
    remove()
    sentry_sdk.get_global_scope().set_client(None)
    sentry_sdk.get_current_scope().set_client(None)


def both() -> tuple[Collected, Any]:
    collected = Collected()
    instrument(tracer_provider=collected.tracer_provider, meter_provider=collected.meter_provider)
    install_as(SentryOptions())
    return collected, start()


@real_transactions
def test_they_do_not_take_each_others_headers() -> None:
    collected, kept = both()
    token = contexts.attach(baggage.set_baggage("customer", "17"))
    try:
        with sentry_sdk.start_transaction(name="request"):
            result = greet.enqueue()
    finally:
        contexts.detach(token)
    headers = headers_of(result.id)
    assert headers.keys() == {"traceparent", "baggage", "sentry-trace", "sentry-baggage"}
    assert headers["baggage"] == "customer=17"
    Driver().work()
    assert seen_by_task()[1] == "17"
    [processed] = collected.named("process default")
    assert len(processed.links) == 1
    request, attempt = kept.transactions
    assert attempt["contexts"]["trace"]["trace_id"] == request["contexts"]["trace"]["trace_id"]


def statements_of_a_job() -> list[str]:
    """Return the statements of an enqueue, a bulk, and the attempts."""
    connections["default"].queries_log.clear()
    with CaptureQueriesContext(connections["default"]) as captured:
        own = greet.using(metadata={"order": 17})
        own.enqueue()
        enqueue_many([call(own), call(own)])
        Driver().work()
    return [each["sql"].partition(" ")[0] for each in captured.captured_queries]


@real_transactions
def test_they_cost_no_statement_beyond_those_of_metadata() -> None:
    statements_of_a_job()  # What is asked once in a process.
    plain = statements_of_a_job()
    both()
    assert statements_of_a_job() == plain != []


def test_a_project_without_them_imports_neither() -> None:
    code = (
        "import sys, django\n"
        "from django.conf import settings\n"
        "settings.configure(INSTALLED_APPS=['django.contrib.contenttypes', 'steady_queue_core'],\n"
        "    DATABASES={'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}},\n"
        "    TASKS={'default': {'BACKEND': 'steady_queue_core.backend.SteadyQueueBackend'}})\n"
        "django.setup()\n"
        "import steady_queue_core.processes.supervisor.supervisor\n"
        "import steady_queue_core.processes.worker.worker\n"
        "print(sorted({'opentelemetry', 'sentry_sdk'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


@pytest.mark.parametrize(("package", "entry", "distribution", "extra"), [
    ("opentelemetry", "opentelemetry.instrumentation", "opentelemetry-api", "otel"),
    ("sentry_sdk", "sentry.installation", "sentry-sdk", "sentry"),
])  # fmt: skip
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, package: str, entry: str, distribution: str, extra: str
) -> None:
    path = f"steady_queue_core.contrib.{entry}"
    monkeypatch.delitem(sys.modules, path, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImproperlyConfigured) as caught:
        import_module(path)
    assert str(caught.value) == (
        f"{path.rpartition('.')[0]} needs the package {distribution}: "
        f"pip install 'steady-queue-core[{extra}]'"
    )


def test_each_kind_of_error_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_logged", set())

    @harmless
    def fail(error: Exception) -> int:
        raise error

    assert fail(LookupError("one")) is None
    assert fail(LookupError("two")) is None
    assert fail(ValueError("three")) is None
    texts = [record.getMessage() for record in caplog.records]
    assert [text.rpartition(": ")[2] for text in texts] == ["one", "three"]
    assert {vars(record)["event"] for record in caplog.records} == {"integration.failed"}

    @harmless
    def leave() -> None:
        raise SystemExit

    assert leave() is None  # type: ignore[func-returns-value]  # None stands for its failure
