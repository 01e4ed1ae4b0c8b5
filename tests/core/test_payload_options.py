"""``OPTIONS["payload"]``."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from steady_queue_core.backend_options import BackendOptions
from steady_queue_core.checks import check_signatures
from steady_queue_core.compat import task_backends
from steady_queue_core.configuration import ConfigurationError
from steady_queue_core.payloads import PayloadOptions, encryption

from .samples import OURS, nothing

WHERE = "TASKS['default']['OPTIONS']['payload']"
KEY = "a" * 43 + "="


def problems_of(payload: object) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        BackendOptions.parse("default", {"payload": payload})
    return caught.value.problems


def payload_of(payload: object) -> PayloadOptions | None:
    return BackendOptions.parse("default", {"payload": payload}).payload


def test_without_the_option_there_is_no_codec(settings: Any) -> None:
    settings.TASKS = {"default": OURS}
    backend: Any = task_backends["default"]
    assert backend.settings.payload is None
    assert backend.payload_codec is None


def test_every_option_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encryption, "find_spec", lambda name: object())
    until = datetime(2030, 1, 2, 3, tzinfo=UTC)
    given = {
        "compress_over": 1024,
        "sign": True,
        "accept_unsigned_until": until,
        "encrypt": True,
        "encryption_keys": [KEY],
    }
    assert payload_of(given) == PayloadOptions(
        compress_over=1024,
        sign=True,
        accept_unsigned_until=until,
        encrypt=True,
        encryption_keys=(KEY,),
    )
    assert payload_of({}) == PayloadOptions()


def test_a_date_begins_at_midnight() -> None:
    found = payload_of({"sign": True, "accept_unsigned_until": date(2030, 1, 2)})
    assert found is not None
    assert found.accept_unsigned_until == datetime(2030, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (True, "WHERE: expected a dict, got bool True"),
        ({"sing": True}, "WHERE: unknown key 'sing'; did you mean 'sign'?"),
        ({"sign": 1}, "WHERE['sign']: expected True or False, got int 1"),
        ({"encrypt": "yes"}, "WHERE['encrypt']: expected True or False, got str 'yes'"),
        (
            {"compress_over": -1},
            "WHERE['compress_over']: expected an integer of at least 0, got int -1",
        ),
        (
            {"compress_over": True},
            "WHERE['compress_over']: expected an integer of at least 0, got bool True",
        ),
        (
            {"sign": True, "accept_unsigned_until": datetime(2030, 1, 1)},
            "WHERE['accept_unsigned_until']: expected a date, which begins at midnight UTC, or a "
            "datetime with a time zone, got datetime datetime.datetime(2030, 1, 1, 0, 0)",
        ),
        (
            {"accept_unsigned_until": date(2030, 1, 1)},
            "WHERE['accept_unsigned_until']: without WHERE['sign'], unsigned payloads are always "
            "accepted",
        ),
        ({"encryption_keys": "secret"}, "WHERE['encryption_keys']: expected a list of keys"),
        (
            {"encryption_keys": [KEY, "secret"]},
            "WHERE['encryption_keys'][1]: expected a key as Fernet.generate_key() makes it, as a "
            "string: 32 bytes in Base64",
        ),
    ],
)
def test_a_wrong_option_is_named(payload: object, problem: str) -> None:
    assert problems_of(payload) == [problem.replace("WHERE", WHERE)]


def test_encryption_without_its_library_is_an_error_at_the_check_and_at_the_start(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(encryption, "find_spec", lambda name: None)
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"payload": {"encrypt": True}}}}
    missing = (
        f"{WHERE}['encrypt'] needs the package cryptography. "
        "Install it: pip install 'steady-queue-core[encryption]'"
    )
    backend: Any = task_backends["default"]
    [found] = backend.check()
    assert (found.id, found.msg) == ("steady_queue.E004", missing)
    with pytest.raises(ConfigurationError, match="needs the package cryptography"):
        backend.database  # noqa: B018  (What a supervisor asks for first.)
    with pytest.raises(ConfigurationError, match="needs the package cryptography"):
        nothing.enqueue()


def test_a_backend_beside_one_that_signs_is_warned_of(settings: Any) -> None:
    signing = {**OURS, "OPTIONS": {"payload": {"sign": True}}}
    settings.TASKS = {"default": signing, "second": OURS}
    [found] = check_signatures(None)
    assert (found.id, found.msg) == (
        "steady_queue.W013",
        "TASKS['second'] accepts unsigned payloads, while another backend refuses them: a row that "
        "names this one runs without a signature.",
    )
    settings.TASKS = {"default": signing, "second": signing}
    assert check_signatures(None) == []
    settings.TASKS = {"default": OURS, "second": OURS}
    assert check_signatures(None) == []
