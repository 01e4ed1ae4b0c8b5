"""The errors of payloads that cannot be trusted or unpacked.

Each is a ``DeserializationError``: the job fails without another attempt.
"""

from __future__ import annotations

from ..arguments import DeserializationError


class PayloadError(DeserializationError):
    """A stored payload cannot be unpacked: it is damaged, forged, or of other settings."""


class UnsignedPayloadError(PayloadError):
    """A payload has no signature, and ``OPTIONS["payload"]["sign"]`` requires one."""


class PayloadSignatureError(PayloadError):
    """The signature of a payload is not that of this text in this job, or by another key."""


class PayloadEncryptionError(PayloadError):
    """A payload cannot be decrypted: it is damaged, or no configured key fits."""


class PayloadCompressionError(PayloadError):
    """A payload cannot be decompressed: it is damaged, or larger than ``max_payload_bytes``."""
