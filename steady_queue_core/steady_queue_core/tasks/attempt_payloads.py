"""The values that an attempt stores while it runs, and their stored form."""

from __future__ import annotations

from typing import Any

from .. import arguments
from ..arguments import DeserializationError, TaskArgumentError
from ..payloads import Scope


class AttemptPayloads:
    """Encodes, seals and reads back values of the types that arguments have, except models."""

    def __init__(self, backend: Any) -> None:
        self._limits, self._codec = backend.payload_limits, backend.payload_codec

    def encode(self, value: Any, what: str) -> str:
        """Return a value as text. Raises ``TaskArgumentError``, which says ``what`` it is."""
        try:
            text = arguments.encode(value, limits=self._limits, root=what)
            if arguments.has_models(text):
                raise TaskArgumentError(
                    f"{what} cannot be stored: there is a model instance in it. Pass its primary "
                    "key."
                )
        except TaskArgumentError as error:
            error.is_of_result = True
            raise
        return text

    def seal(self, text: str, scope: Scope) -> str:
        """Return the stored form of an encoded value."""
        return text if self._codec is None else self._codec.seal(text, scope)

    def open(self, stored: Any, scope: Scope) -> str:
        """Return the encoded value of a stored form. Raises ``PayloadError``."""
        # SQLite lets a row hold something other than text.
        return str(stored) if self._codec is None else self._codec.open(stored, scope)

    def decode(self, text: str, what: str) -> Any:
        """Return an encoded value. Raises ``DeserializationError``."""
        if arguments.has_models(text):
            raise DeserializationError(f"The stored {what} refers to a model instance.")
        return arguments.decode(text, resolve_models=False, limits=self._limits)
