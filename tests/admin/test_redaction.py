"""What is named like a secret is hidden wherever values are shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

from steady_queue_core import arguments, schedule_recurring_task, task
from steady_queue_core.listings import payloads
from steady_queue_core.listings.payloads import HIDDEN, Redactor
from steady_queue_core.models import Job, RecurringTask

from ..app.tasks import make_token, noop, sign_up
from ..findings import for_each
from .places import Scene, on_every_database
from .visitor import EVERYTHING, Page, Visitor

SECRET = "hunter2"


def page_of(scene: Scene, task: str, args: Any, kwargs: Any, **fields: Any) -> Page:
    """Return the page of a finished job with these arguments."""
    [job] = scene.finished(1, task_path=task, arguments=arguments.encode_call(args, kwargs))
    Job.objects.using(scene.using).filter(pk=job).update(**fields)
    visitor = Visitor(*EVERYTHING)
    return visitor.see(visitor.url("job", "change", job))


@on_every_database
def test_positional_arguments_are_hidden_by_the_names_of_their_parameters(
    using: str, scene: Scene
) -> None:
    args = ["Ada", SECRET, SECRET, SECRET]
    page = page_of(scene, sign_up.module_path, args, {"pwd": SECRET, "age": 36})
    assert f"'Ada', '{HIDDEN}', '{HIDDEN}', '{HIDDEN}', pwd='{HIDDEN}', age=36" in page
    assert SECRET not in page.source


@pytest.mark.django_db
def test_arguments_that_have_no_name_are_hidden(scene: Scene) -> None:
    page = page_of(scene, noop.module_path, [SECRET], {"size": 7})
    assert f"'{HIDDEN}', size=7" in page
    assert SECRET not in page.source
    page = page_of(scene, "shop.tasks.gone", [SECRET], {"size": 7})
    assert f"'{HIDDEN}', size=7" in page
    assert "The task is not registered in this process: positional arguments are hidden." in page
    assert SECRET not in page.source


@pytest.mark.django_db
def test_a_recurring_task_hides_them_as_well(scene: Scene) -> None:
    present = "2026-01-01T00:00:00Z"
    RecurringTask.objects.create(
        key="daily", task_path=sign_up.module_path, schedule="@daily", timezone="UTC",
        arguments=arguments.encode_call(["Ada", SECRET], {"otp": SECRET}), backend_name="default",
        queue_name="default", created_at=present, updated_at=present,
    )  # fmt: skip
    visitor = Visitor(*EVERYTHING)
    page = visitor.see(visitor.url("recurringtask", "change", "daily"))
    assert "'Ada'" in page
    assert SECRET not in page.source


@pytest.mark.django_db
def test_results_are_hidden_by_their_keys_and_by_the_name_of_the_task(scene: Scene) -> None:
    value = arguments.encode({"rows": 3, "user": {"password": SECRET, b"dsn": SECRET}})
    page = page_of(scene, noop.module_path, [], {}, return_value=value)
    assert f"{{'rows': 3, 'user': {{'password': '{HIDDEN}', b'dsn': '{HIDDEN}'}}}}" in page
    assert SECRET not in page.source
    value = arguments.encode(SECRET)
    page = page_of(scene, make_token.module_path, [], {}, return_value=value)
    assert f"Result '{HIDDEN}'" in page
    assert SECRET not in page.source


@pytest.mark.django_db
@pytest.mark.parametrize(
    "stored",
    [
        f'{{"args":[],"kwargs":{{"password":"{SECRET}"',
        f'{{"args":[{{"__sq_no__":1}}],"kwargs":{{"password":"{SECRET}"}}}}',
        f'"{SECRET}"' + " " * 2_000_000,
        f'{{"args":[],"kwargs":{{"password":"{SECRET}","text":"{"x" * 200_000}"}}}}',
    ],
)
def test_text_that_cannot_be_read_is_not_shown(scene: Scene, stored: str) -> None:
    [job] = scene.finished(1)
    Job.objects.filter(pk=job).update(arguments=stored, return_value=stored)
    visitor = Visitor(*EVERYTHING)
    page = visitor.see(visitor.url("job", "change", job))
    assert page.status == 200
    assert "characters" in page
    assert SECRET not in page.source
    assert len(page.source) < 100_000


@for_each(
    "name, hidden",
    [
        ("password", True), ("API_KEY", True), ("pwd", True), ("db_pwd", True), ("otp", True),
        ("otp2", True), ("dsn", True), ("SENTRY_DSN", True), ("card_number", True),
        ("cardNumber", True), ("credit_card", True), (b"pin", True), ("pin_code", True),
        ("session_id", True), ("credentials", True),
        ("shipping", False), ("discarded", False), ("company", False), ("options", False),
        ("standard", False), ("size", False), (7, False), (None, False), (("pwd",), False),
    ],
)  # fmt: skip
def test_names_of_secrets(name: object, hidden: bool) -> None:
    assert Redactor().is_secret(name) is hidden


def test_values_are_hidden_however_deep_they_stand() -> None:
    redactor = Redactor()
    assert redactor.redact([{"a": ({"token": 1}, 2)}]) == [{"a": ({"token": HIDDEN}, 2)}]
    assert redactor.redact([("pwd", 1), ["size", 2]]) == [("pwd", HIDDEN), ["size", 2]]
    assert redactor.redact({"token": {"a": 1}, 3: {"b": None}}) == {"token": HIDDEN, 3: {"b": None}}
    assert redactor.redact({1, "password"}) == {1, "password"}


def test_the_names_can_be_set(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.STEADY_QUEUE = {"hidden_arguments": "^shoe_size$"}
    assert Redactor().is_secret("Shoe_Size")
    assert Redactor().is_secret("password")  # As on Django's error pages.
    assert not Redactor().is_secret("pwd")
    monkeypatch.setattr(payloads, "get_default_exception_reporter_filter", ShowsAll)
    assert not Redactor().is_secret("password")
    settings.STEADY_QUEUE = {"hidden_arguments": "("}
    assert Redactor().is_secret("pwd")


class ShowsAll:
    """A filter of error pages that is none of Django's."""


def test_parameters_of_a_task() -> None:
    path, redactor = sign_up.module_path, Redactor()
    assert redactor.names(path, 1) == ["name"]
    assert redactor.names(path, 4) == ["name", "password", "pins", "pins"]
    assert redactor.names(noop.module_path, 3) == []
    assert redactor.names("shop.tasks.gone", 3) is None
    assert redactor.names(b"\0", 3) is None


def passing(*before: object) -> Callable[[Any], Any]:
    """Put arguments before those that a function is given."""

    def decorate(function: Any) -> Any:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*before, *args, **kwargs)

        return wrapper

    return decorate


@task
@passing("client")
def log_in(client: str, password: str, remember: bool = False) -> None:
    """Get an argument that who enqueues does not give."""


@task
@passing()
def measure(length: int, width: int) -> None:
    """Get what who enqueues gives, and nothing that is secret."""


def test_a_decorator_may_shift_what_is_secret() -> None:
    redactor = Redactor()
    for values in (SECRET,), (SECRET, True):
        names = redactor.names(log_in.module_path, len(values))
        assert SECRET not in redactor.redact_positional(values, names)
    names = redactor.names(measure.module_path, 2)
    assert redactor.redact_positional((3, 4), names) == [3, 4]


@pytest.mark.django_db
def test_sealed_values_are_shown_once_they_are_verified(scene: Scene, settings: Any) -> None:
    given = settings.TASKS["default"]
    options = {**given["OPTIONS"], "payload": {"sign": True, "compress_over": 0}}
    settings.TASKS = {"default": {**given, "OPTIONS": options}}
    result = sign_up.enqueue("Ada", SECRET)
    schedule_recurring_task("daily", sign_up, schedule="@daily", args=["Ada", SECRET])
    visitor = Visitor(*EVERYTHING)
    pages = [
        visitor.url("job", "change", int(result.id)),
        visitor.url("recurringtask", "change", "daily"),
    ]
    for page in map(visitor.see, pages):
        assert f"'Ada', '{HIDDEN}'" in page
        assert SECRET not in page.source

    Job.objects.update(max_attempts=9, return_value='"forged"', finished_at="2026-01-01T00:00Z")
    RecurringTask.objects.update(queue_name="other")
    job, recurring = map(visitor.see, pages)
    assert "The signature of the stored call does not match: the row was changed" in job
    assert "The stored result has no signature" in job
    assert "forged" not in job.source
    assert "The signature of the stored recurring does not match" in recurring
    for page in (job, recurring):
        assert "Ada" not in page.source
