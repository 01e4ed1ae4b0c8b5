"""The key of a job in a fair queue: stored with its metadata."""

from __future__ import annotations

from typing import Any

from .. import arguments
from ..arguments import DeserializationError
from .job_key import LONGEST_KEY, is_storable

#: The name of the key in the metadata of a job.
NAME = "fair"


class FairKey:
    @staticmethod
    def read(metadata: object) -> str | None:
        if metadata is None or f'"{NAME}"' not in (text := str(metadata)):
            return None
        try:
            found: Any = arguments.decode(text, resolve_models=False)
        except DeserializationError:
            return None
        key = found.get(NAME) if isinstance(found, dict) else None
        is_key = isinstance(key, str) and len(key) <= LONGEST_KEY and is_storable(key)
        return key if is_key else None
