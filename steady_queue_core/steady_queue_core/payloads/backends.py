"""What the backends in ``TASKS`` say of payloads, found by the names in rows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ..arguments import PayloadLimits
from ..configuration import ConfigurationError
from .codec import PayloadCodec


def limits_of(backend_name: str) -> PayloadLimits | None:
    """Return the limits of the payloads of a backend, unless it has none."""
    limits: PayloadLimits | None = _of_backend(backend_name, "payload_limits")
    return limits


def codec_of(backend_name: str) -> PayloadCodec | None:
    """Return what seals and opens the payloads of a backend; ``None``: nothing does."""
    codec: PayloadCodec | None = _of_backend(backend_name, "payload_codec")
    return codec


def _of_backend(name: str, attribute: str) -> Any:
    """Return what the backend says that a row names; of an unknown name, what the default one says,
    so that a row cannot name itself out of a signature."""
    # Models need this, and are imported before a check says that there is no task framework.
    from ..compat import DEFAULT_TASK_BACKEND_ALIAS, InvalidTaskBackend, task_backends

    for alias in (name, DEFAULT_TASK_BACKEND_ALIAS):
        with suppress(InvalidTaskBackend, ConfigurationError):
            return getattr(task_backends[alias], attribute, None)
    return None
