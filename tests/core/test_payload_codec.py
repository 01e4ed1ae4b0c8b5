"""Payloads in their envelopes: what goes in comes out, and nothing else does."""

from __future__ import annotations

import tracemalloc
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steady_queue_core.arguments import DeserializationError, PayloadLimits
from steady_queue_core.payloads import (
    PayloadCodec,
    PayloadCompressionError,
    PayloadEncryptionError,
    PayloadError,
    PayloadOptions,
    PayloadSignatureError,
    UnsignedPayloadError,
    compression,
    encryption,
    signature,
)

SCOPE = ("call", "shop.tasks.pay", "default", "mail", 0, 3, None)
TEXT = '{"args":[17],"kwargs":{}}'
LONG = '{"args":["' + "tea " * 1000 + '"],"kwargs":{}}'
HOUR = timedelta(hours=1)

needs_cryptography = pytest.mark.skipif(
    not encryption.is_available(), reason="cryptography is not installed"
)
#: Every combination of the three steps.
COMBINATIONS = [
    pytest.param(
        PayloadOptions(compress_over=over, sign=sign, encrypt=encrypt),
        marks=[needs_cryptography] * encrypt,
        id=f"{'z' * (over == 0)}{'e' * encrypt}{'s' * sign}" or "none",
    )
    for over in (None, 0)
    for sign in (False, True)
    for encrypt in (False, True)
]


def codec(limit: int = 2**20, **options: Any) -> PayloadCodec:
    return PayloadCodec(PayloadOptions(**options), PayloadLimits(max_bytes=limit))


def never(*args: Any, **kwargs: Any) -> NoReturn:
    raise AssertionError("called")


@pytest.mark.parametrize("options", COMBINATIONS)
@pytest.mark.parametrize("text", [TEXT, LONG, "null", '"~z::"'])
def test_what_was_sealed_comes_out_again(options: PayloadOptions, text: str) -> None:
    each = PayloadCodec(options, PayloadLimits())
    sealed = each.seal(text, SCOPE)
    assert sealed.isascii()
    assert each.open(sealed, SCOPE) == text
    # Settings that do less can read what others have written.
    assert codec().open(sealed, SCOPE) == text


@given(st.text(st.characters(max_codepoint=127), max_size=300))
def test_any_ascii_text_comes_out_as_it_was(text: str) -> None:
    each = codec(sign=True, compress_over=0)
    assert each.open(each.seal(text, SCOPE), SCOPE) == text


def test_without_a_step_the_text_is_stored_as_it_is() -> None:
    assert codec().seal(TEXT, SCOPE) == TEXT
    assert codec(compress_over=len(LONG)).seal(LONG, SCOPE) == LONG
    # Base64 would make more of it than compression saves.
    assert codec(compress_over=0).seal(TEXT, SCOPE) == TEXT


def test_long_text_is_compressed() -> None:
    sealed = codec(compress_over=1024).seal(LONG, SCOPE)
    assert len(sealed) < len(LONG) / 10
    assert sealed.startswith("~z::")


@needs_cryptography
def test_nothing_of_encrypted_text_can_be_read() -> None:
    each = codec(encrypt=True, compress_over=1024)
    for text, steps in ((TEXT, "~e::"), (LONG, "~ze::")):
        sealed = each.seal(text, SCOPE)
        assert sealed.startswith(steps)
        assert "args" not in sealed
        assert b"args" not in b64decode(sealed.removeprefix(steps), b"-_")
    assert len(sealed) < len(LONG) / 5
    assert each.seal(TEXT, SCOPE) != each.seal(TEXT, SCOPE)


# --- signatures -----------------------------------------------------------------------------------


@pytest.fixture
def nothing_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "decompress", never)
    monkeypatch.setattr(encryption, "decrypt", never)


@pytest.mark.usefixtures("nothing_is_undone")
@pytest.mark.parametrize("position", range(len(SCOPE)))
def test_a_payload_cannot_be_moved_to_another_scope(position: int) -> None:
    each = codec(sign=True, compress_over=0)
    sealed = each.seal(LONG, SCOPE)
    moved = tuple("other" if at == position else part for at, part in enumerate(SCOPE))
    with pytest.raises(PayloadSignatureError, match=r"The signature of the stored \w+ does not"):
        each.open(sealed, moved)


def test_parts_of_a_scope_do_not_run_into_each_other() -> None:
    each = codec(sign=True)
    sealed = each.seal(TEXT, ("call", "a", "b", None))
    for other in (("call", "ab", "", None), ("call", "a", "b", ""), ("call", 'a", "b', "null")):
        with pytest.raises(PayloadSignatureError):
            each.open(sealed, other)


CHANGES: dict[str, Callable[[str], str]] = {
    "body": lambda sealed: sealed[:-4] + "AAA=",
    "signature": lambda sealed: sealed.replace(":", ":A", 1),
    "no signature": lambda sealed: f"~zs::{sealed.rpartition(':')[2]}",
    "steps": lambda sealed: sealed.replace("~zs", "~s", 1),
    "a signature by another key": lambda sealed: (
        f"~zs:{signature.sign('zs:QQ==', ('call', 'x'))}:QQ=="
    ),
}


@pytest.mark.usefixtures("nothing_is_undone")
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_payload_is_refused_and_nothing_of_it_is_undone(change: str) -> None:
    each = codec(sign=True, compress_over=0)
    changed = CHANGES[change](each.seal(LONG, SCOPE))
    for reader in (each, codec()):  # A signature that is there is verified by any settings.
        with pytest.raises(PayloadSignatureError):
            reader.open(changed, SCOPE)


@pytest.mark.usefixtures("nothing_is_undone")
@pytest.mark.parametrize("stored", [TEXT, codec(compress_over=0).seal(LONG, SCOPE), "~e::gAAAA"])
def test_what_has_no_signature_is_refused_and_nothing_of_it_is_undone(stored: str) -> None:
    with pytest.raises(
        UnsignedPayloadError,
        match=r"^The stored call has no signature, and OPTIONS\['payload'\]\['sign'\] requires "
        r"one\.$",
    ):
        codec(sign=True).open(stored, SCOPE)


def test_unsigned_payloads_pass_until_a_date() -> None:
    present = datetime.now(UTC)
    assert codec(sign=True, accept_unsigned_until=present + HOUR).open(TEXT, SCOPE) == TEXT
    with pytest.raises(UnsignedPayloadError):
        codec(sign=True, accept_unsigned_until=present - HOUR).open(TEXT, SCOPE)
    # A signature that is wrong never passes.
    with pytest.raises(PayloadSignatureError):
        codec(sign=True, accept_unsigned_until=present + HOUR).open(f"~s:x:{TEXT}", SCOPE)


def test_keys_are_rotated(settings: Any) -> None:
    each = codec(sign=True)
    sealed = each.seal(TEXT, SCOPE)
    settings.SECRET_KEY = "a newer one"
    with pytest.raises(PayloadSignatureError):
        each.open(sealed, SCOPE)
    settings.SECRET_KEY_FALLBACKS = ["for tests only"]
    assert each.open(sealed, SCOPE) == TEXT
    newer = each.seal(TEXT, SCOPE)
    settings.SECRET_KEY_FALLBACKS = []
    assert each.open(newer, SCOPE) == TEXT


# --- encryption -----------------------------------------------------------------------------------


@needs_cryptography
def test_keys_of_encryption_are_rotated(settings: Any) -> None:
    from cryptography.fernet import Fernet

    old, new = (Fernet.generate_key().decode() for _ in range(2))
    by_secret = codec(encrypt=True).seal(TEXT, SCOPE)
    by_old = codec(encrypt=True, encryption_keys=(old,)).seal(TEXT, SCOPE)
    both = codec(encrypt=True, encryption_keys=(new, old))
    by_new = both.seal(TEXT, SCOPE)
    for sealed in (by_secret, by_old, by_new):
        assert both.open(sealed, SCOPE) == TEXT
    with pytest.raises(PayloadEncryptionError):
        codec(encryption_keys=(old,)).open(by_new, SCOPE)
    settings.SECRET_KEY = "a newer one"
    with pytest.raises(
        PayloadEncryptionError,
        match="it is damaged, or was encrypted with a key that is no longer configured",
    ):
        both.open(by_secret, SCOPE)
    settings.SECRET_KEY_FALLBACKS = ["for tests only"]
    assert both.open(by_secret, SCOPE) == TEXT


@needs_cryptography
@pytest.mark.parametrize("body", ["", "gAAAAA", "=", "a" * 100])
def test_damaged_ciphertext_is_refused(body: str) -> None:
    with pytest.raises(PayloadEncryptionError):
        codec().open(f"~e::{body}", SCOPE)


def test_without_the_library_ciphertext_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(encryption, "find_spec", lambda name: None)
    with pytest.raises(
        PayloadEncryptionError,
        match=r"^Decrypting the stored payload needs the package cryptography\. "
        r"Install it: pip install 'steady-queue-core\[encryption\]'$",
    ):
        codec().open("~e::gAAAA", SCOPE)


# --- hostile text ---------------------------------------------------------------------------------


def compressed(data: bytes) -> str:
    return "~z::" + b64encode(zlib.compress(data, 9)).decode()


def test_a_bomb_is_refused_with_bounded_memory() -> None:
    bomb = compressed(b"0" * 300_000_000)
    assert len(bomb) < 500_000
    tracemalloc.start()
    try:
        with pytest.raises(
            PayloadCompressionError,
            match="decompresses to more than the limit, max_payload_bytes: 1,000,000 bytes",
        ):
            codec(limit=1_000_000).open(bomb, SCOPE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


def test_the_limit_itself_is_no_bomb() -> None:
    assert codec(limit=1000).open(compressed(b"0" * 1000), SCOPE) == "0" * 1000
    with pytest.raises(PayloadCompressionError):
        codec(limit=1000).open(compressed(b"0" * 1001), SCOPE)


def test_more_text_than_a_payload_needs_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signature, "verify", never)
    with pytest.raises(PayloadError, match=r"more than any of\s+max_payload_bytes, 100, needs"):
        codec(limit=100).open("~s:x:" + "0" * 2000, SCOPE)


@pytest.mark.parametrize("options", COMBINATIONS)
def test_whatever_is_within_the_limit_can_be_read_again(options: PayloadOptions) -> None:
    """Random text, which no compression makes shorter, as long as the limit allows."""
    import random

    source = random.Random(7)
    for size in (1, 100, 5000):
        text = "".join(chr(source.randrange(32, 127)) for _ in range(size))
        each = PayloadCodec(options, PayloadLimits(max_bytes=size))
        assert each.open(each.seal(text, SCOPE), SCOPE) == text


@pytest.mark.parametrize(
    "stored",
    [
        "~", "~z", "~z:", "~z::", "~z::!", "~z::QQ==", "~z:x", "~q::x", "~ez::x", "~ss:x:y",
        "~::x", "~s", "~z::" + b64encode(zlib.compress(b"0")[:-1]).decode(),
        "~z::" + b64encode(zlib.compress(b"0") + b"more").decode(),
        compressed("é".encode()), "~z::é", "~s:x:\ud800", b"~s:x:y", None, 7,
    ],
)  # fmt: skip
def test_text_in_no_proper_envelope_is_a_named_error(stored: Any) -> None:
    for each in (codec(), codec(sign=True)):
        with pytest.raises(PayloadError):
            each.open(stored, SCOPE)


def test_the_errors_are_those_of_reading_arguments() -> None:
    assert issubclass(PayloadError, DeserializationError)
