"""Puts the text of a payload into its envelope, and takes it out again."""

from __future__ import annotations

from base64 import b64encode
from binascii import Error, a2b_base64
from typing import Final

from ..arguments import PayloadLimits
from . import compression, encryption, signature
from .errors import PayloadCompressionError, PayloadError, UnsignedPayloadError
from .options import PayloadOptions
from .scopes import Scope

#: What an envelope begins with, and the letters of the steps, in the order in which they are taken.
MARK: Final = "~"
COMPRESSED, ENCRYPTED, SIGNED = "z", "e", "s"
STEPS: Final = frozenset(["z", "e", "s", "ze", "zs", "es", "zes"])


class PayloadCodec:
    """Seals and opens the payloads of one backend."""

    def __init__(self, options: PayloadOptions, limits: PayloadLimits) -> None:
        self.options, self.limits = options, limits

    def seal(self, text: str, scope: Scope) -> str:
        """Return encoded ``text`` in the form in which it is stored; ``scope`` is what it belongs
        to."""
        steps, body = self._packed(text)
        if self.options.sign:
            steps += SIGNED
            return f"{MARK}{steps}:{signature.sign(f'{steps}:{body}', scope)}:{body}"
        return f"{MARK}{steps}::{body}" if steps else body

    def open(self, stored: str, scope: Scope) -> str:
        """Return the encoded text of a stored payload, once its signature is verified.

        Text without an envelope is returned as it is, unless it has to be signed. Raises a
        ``PayloadError``; for a signature that is missing or does not match, before anything is
        decrypted or decompressed.
        """
        if not isinstance(stored, str):
            raise PayloadError("The stored payload is not text.")
        self._require_size(stored)
        steps, signed_by, body = _parts(stored)
        if SIGNED in steps:
            signature.verify(f"{steps}:{body}", signed_by, scope)
        elif self.options.refuses_unsigned():
            raise UnsignedPayloadError(
                f"The stored {scope[0]} has no signature, and OPTIONS['payload']['sign'] requires "
                "one."
            )
        return self._unpacked(steps, body)

    def _packed(self, text: str) -> tuple[str, str]:
        """Return the steps that were taken, and what they made of ``text``."""
        over = self.options.compress_over
        data = compression.compress(text.encode()) if over is not None and len(text) > over else b""
        if self.options.encrypt:
            smaller = 0 < len(data) < len(text)
            packed = data if smaller else text.encode()
            keys = self.options.encryption_keys
            return COMPRESSED * smaller + ENCRYPTED, encryption.encrypt(packed, keys)
        body = b64encode(data).decode("ascii")
        return (COMPRESSED, body) if 0 < len(body) < len(text) else ("", text)

    def _unpacked(self, steps: str, body: str) -> str:
        if COMPRESSED not in steps and ENCRYPTED not in steps:
            return body
        if ENCRYPTED in steps:
            data = encryption.decrypt(body, self.options.encryption_keys)
        else:
            data = _bytes_of(body)
        if COMPRESSED in steps:
            data = compression.decompress(data, limit=self.limits.max_bytes)
        try:
            return data.decode("ascii")
        except UnicodeDecodeError:
            raise PayloadError("The stored payload is not that of a job.") from None

    def _require_size(self, stored: str) -> None:
        # Base64 and encryption add a third, and less than this.
        if len(stored) > 2 * self.limits.max_bytes + 1024:
            raise PayloadError(
                f"The stored payload has {len(stored):,} characters, more than any of "
                f"max_payload_bytes, {self.limits.max_bytes:,}, needs."
            )


def _parts(stored: str) -> tuple[str, str, str]:
    """Return the steps, the signature and the body of a stored payload."""
    if not stored.startswith(MARK):
        return "", "", stored
    if not stored.isascii():
        raise PayloadError("The stored payload is in no known envelope.")
    steps, first, rest = stored[1:].partition(":")
    signed_by, second, body = rest.partition(":")
    if not (first and second and steps in STEPS):
        raise PayloadError("The stored payload is in no known envelope.")
    return steps, signed_by, body


def _bytes_of(body: str) -> bytes:
    try:
        return a2b_base64(body, strict_mode=True)
    except (Error, ValueError):
        raise PayloadCompressionError(
            "The stored payload is damaged: it is not proper Base64."
        ) from None
