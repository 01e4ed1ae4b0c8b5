"""Encryption with Fernet, of the optional package ``cryptography``; its only importer."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from django.conf import settings

from .errors import PayloadEncryptionError

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

#: What the key of an installation is derived with: another would make stored payloads unreadable.
PURPOSE = b"steady_queue_core.payloads.encryption"
MISSING = "needs the package cryptography. Install it: pip install 'steady-queue-core[encryption]'"


def is_available() -> bool:
    """Whether the package ``cryptography`` is installed."""
    return find_spec("cryptography") is not None


def is_key(text: object) -> bool:
    """Whether ``text`` is a key as ``Fernet.generate_key()`` makes them: 32 bytes in Base64."""
    try:
        return isinstance(text, str) and len(base64.b64decode(text, b"-_", validate=True)) == 32
    except ValueError:
        return False


def encrypt(data: bytes, keys: Sequence[str]) -> str:
    """Return ``data`` encrypted with the first of ``keys``, or, if there are none, with
    ``SECRET_KEY``."""
    token: bytes = _cipher(keys).encrypt(data)
    return token.decode("ascii")


def decrypt(token: str, keys: Sequence[str]) -> bytes:
    """Return what was encrypted with one of ``keys``, or with ``SECRET_KEY`` or one of its
    fallbacks.

    Raises ``PayloadEncryptionError``.
    """
    if not is_available():
        raise PayloadEncryptionError(f"Decrypting the stored payload {MISSING}")
    from cryptography.fernet import InvalidToken

    try:
        data: bytes = _cipher(keys).decrypt(token.encode("ascii"))
    except (InvalidToken, UnicodeEncodeError):
        raise PayloadEncryptionError(
            "The stored payload cannot be decrypted: it is damaged, or was encrypted with a key "
            "that is no longer configured."
        ) from None
    return data


def _cipher(keys: Sequence[str]) -> MultiFernet:
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return _cipher_of(tuple(keys), tuple(_bytes_of(each) for each in secrets))


@lru_cache(maxsize=20)
def _cipher_of(keys: tuple[str, ...], secrets: tuple[bytes, ...]) -> MultiFernet:
    """Return what encrypts with the first key. The secrets can decrypt although there are keys:
    they were in use before these."""
    from cryptography.fernet import Fernet, MultiFernet

    derived = [hmac.digest(each, PURPOSE, hashlib.sha256) for each in secrets]
    return MultiFernet(
        [*map(Fernet, keys), *(Fernet(base64.urlsafe_b64encode(each)) for each in derived)]
    )


def _bytes_of(secret: str | bytes) -> bytes:
    return secret.encode() if isinstance(secret, str) else secret
