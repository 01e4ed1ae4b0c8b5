"""The arguments of a claimed call: taken out of their stored form, and decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ... import arguments
from ...batches.parent_results import ParentResults
from ...compat import Task
from ...dialects import ClaimedJob
from ...payloads import PayloadCodec, call_scope
from ...tasks.metadata import JobMetadata
from ...tasks.model_arguments import require_permitted_models

if TYPE_CHECKING:
    from ...backend import SteadyQueueBackend

Arguments = tuple[list[Any], dict[str, Any]]
"""Positional arguments, and those with names."""


class CallArguments:
    """Decodes the arguments of a claimed job."""

    __slots__ = ("_backend", "_claim", "_text")

    def __init__(self, claim: ClaimedJob, backend: SteadyQueueBackend) -> None:
        self._claim, self._backend = claim, backend
        self._text = claim.arguments if backend.payload_codec is None else None

    @property
    def text(self) -> str:
        """The encoded arguments. Raises ``PayloadError``."""
        if self._text is None:
            codec = cast(PayloadCodec, self._backend.payload_codec)
            scope = call_scope(self._claim, self._claim.concurrency_key)
            self._text = codec.open(self._claim.arguments, scope)
        return self._text

    @property
    def needs_models(self) -> bool:
        """Whether decoding queries the database, for models or for results of other jobs. Raises
        ``PayloadError``."""
        # SQLite lets a row hold something other than text.
        return arguments.has_references(str(self.text))

    def decode(self, task: Task, using: str | None) -> Arguments:
        """Return the arguments for ``task`` of a job in the database ``using``; ``None``: that of
        its backend. Raises ``DeserializationError``."""
        limits, text = self._backend.payload_limits, self.text
        if not arguments.has_references(str(text)):
            return arguments.decode_call(text, resolve_models=True, limits=limits)
        permitted = self._backend.settings.argument_models

        def require_permitted(value: Any) -> None:
            require_permitted_models(task, [value], {}, permitted)

        args, kwargs = self.decode_without_models()
        require_permitted_models(task, args, kwargs, permitted)
        # Asked for only if the text refers to one.
        results = ParentResults(
            using or self._backend.database,
            self._claim.job_id,
            require_permitted,
            JobMetadata.read(self._claim.metadata),
        )
        return arguments.decode_call(text, resolve_models=True, limits=limits, result_of=results)

    def decode_without_models(self) -> Arguments:
        """Return the arguments with references in place of models. Raises
        ``DeserializationError``."""
        limits = self._backend.payload_limits
        return arguments.decode_call(self.text, resolve_models=False, limits=limits)
