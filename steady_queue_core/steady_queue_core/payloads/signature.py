"""Signatures by Django's keys: ``SECRET_KEY`` signs, ``SECRET_KEY_FALLBACKS`` verify as well."""

from __future__ import annotations

import json

from django.core.signing import BadSignature, Signer

from .errors import PayloadSignatureError
from .scopes import Scope

SALT = "steady_queue_core.payloads"


def sign(text: str, scope: Scope) -> str:
    """Return the signature of ``text`` in its ``scope``."""
    return _signer().signature(_message(text, scope))


def verify(text: str, signature: str, scope: Scope) -> None:
    """Raise ``PayloadSignatureError`` unless the ``signature`` is that of ``text`` in ``scope``."""
    signer = _signer()
    try:
        signer.unsign(f"{_message(text, scope)}{signer.sep}{signature}")
    except BadSignature:
        raise PayloadSignatureError(
            f"The signature of the stored {scope[0]} does not match: the row was changed outside "
            "of the queue, was copied from another one, or was signed with a key that is neither "
            "SECRET_KEY nor in SECRET_KEY_FALLBACKS."
        ) from None


def _message(text: str, scope: Scope) -> str:
    # JSON has no line break of its own: where the scope ends is unambiguous. SQLite lets the row of
    # a job hold values that JSON does not have.
    return f"{json.dumps(scope, default=repr)}\n{text}"


def _signer() -> Signer:
    # Made anew, so that it has the keys of the present settings.
    return Signer(salt=SALT)
