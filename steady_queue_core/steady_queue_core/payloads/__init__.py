"""What is done to the text of arguments and results before it is stored: compressing, encrypting
and signing it, as ``OPTIONS["payload"]`` says.

Text that nothing was done to is stored as it is. Other text is stored in an envelope: ``~``, one
letter for each step, ``:``, the signature (empty without one), ``:``, and the body. JSON never
begins with ``~``. The signature covers the letters, the body, and the ``Scope`` of the payload:
what it belongs to. Reading undoes the steps in reverse order and stops at the first one that fails,
so that nothing of a payload with a wrong signature is decrypted, decompressed or decoded.
"""

from __future__ import annotations

from .codec import PayloadCodec
from .errors import (
    PayloadCompressionError,
    PayloadEncryptionError,
    PayloadError,
    PayloadSignatureError,
    UnsignedPayloadError,
)
from .options import PayloadOptions
from .scopes import (
    Scope,
    call_scope,
    checkpoint_scope,
    recurring_scope,
    result_scope,
    step_scope,
)

__all__ = [
    "PayloadCodec",
    "PayloadCompressionError",
    "PayloadEncryptionError",
    "PayloadError",
    "PayloadOptions",
    "PayloadSignatureError",
    "Scope",
    "UnsignedPayloadError",
    "call_scope",
    "checkpoint_scope",
    "recurring_scope",
    "result_scope",
    "step_scope",
]
